"""The ResNet of Hugging Face transformers from a configuration, without weights, in two layouts of memory.

pip install "transformers==5.24.*"
kit run --program transformers_resnet.py:channels_first --program transformers_resnet.py:channels_last --batch 8
"""

import torch
from transformers import ResNetConfig, ResNetForImageClassification

IMAGE = 64  # pixels; ImageNet has 224
# Without arguments the configuration is ResNet-50.
SMALL = ResNetConfig(layer_type="basic", embedding_size=32, depths=[1, 1, 1, 1], hidden_sizes=[32, 64, 128, 256])


def network(batch, device, task, layout):
    place = {"cpu": "cpu", "gpu": "cuda"}[device]
    model = ResNetForImageClassification(SMALL).to(place, memory_format=layout).train(task == "train")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    images = torch.rand(batch, 3, IMAGE, IMAGE, device=place).to(memory_format=layout)
    labels = torch.randint(model.config.num_labels, (batch,), device=place)

    def train():
        loss = model(pixel_values=images, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    def infer():
        with torch.inference_mode():
            return model(pixel_values=images).logits

    return train if task == "train" else infer


def channels_first(batch, device, task):
    return network(batch, device, task, torch.contiguous_format)


def channels_last(batch, device, task):
    return network(batch, device, task, torch.channels_last)
