"""Two encoders of Hugging Face transformers, from configurations, without weights: is DistilBERT worth its loss?

pip install "transformers==5.24.*"
kit run --program transformers_encoders.py:bert --program transformers_encoders.py:distilbert --batch 8
"""

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DistilBertConfig,
    DistilBertForSequenceClassification,
)

VOCABULARY, TOKENS, WIDTH, LAYERS = 8192, 64, 256, 4  # bert-base-uncased: 30522, up to 512, 768 and 12


def classifier(model, batch, device, task):
    place = {"cpu": "cpu", "gpu": "cuda"}[device]
    model = model.to(place).train(task == "train")
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    ids = torch.randint(1, VOCABULARY, (batch, TOKENS), device=place)
    labels = torch.randint(2, (batch,), device=place)

    def train():
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    def infer():
        with torch.inference_mode():
            return model(input_ids=ids).logits

    return train if task == "train" else infer


def bert(batch, device, task):
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=WIDTH // 64,
        intermediate_size=4 * WIDTH,
    )
    return classifier(BertForSequenceClassification(config), batch, device, task)


def distilbert(batch, device, task):
    config = DistilBertConfig(
        vocab_size=VOCABULARY, dim=WIDTH, n_layers=LAYERS // 2, n_heads=WIDTH // 64, hidden_dim=4 * WIDTH
    )
    return classifier(DistilBertForSequenceClassification(config), batch, device, task)
