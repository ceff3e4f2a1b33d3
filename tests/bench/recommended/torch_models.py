"""The networks in PyTorch's own modules.

The transformer is nn.TransformerEncoder with a causal mask, pre-norm, as in
https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoderLayer.html; recurrent networks take the last
hidden state that nn.RNN and nn.LSTM return. ResNet-50 is made as torchvision's
(https://github.com/pytorch/vision/blob/main/torchvision/models/resnet.py), GPT-2 as nanoGPT's
(https://github.com/karpathy/nanoGPT/blob/master/model.py).
"""

import torch
from recommended.sizes import DEPTH, DEPTHS, FILTERS, HEADS, LENGTH, VOCABULARY, WIDTH
from torch import nn


def mlp():
    return nn.Sequential(
        nn.Linear(28 * 28, 512),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(512, 512),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(512, 10),
    )


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.25),
        nn.Flatten(),
        nn.Linear(64 * 12 * 12, 128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, 10),
    )


def cnn_small():
    return nn.Sequential(
        nn.Conv2d(1, 64, 2, padding="same"),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.3),
        nn.Conv2d(64, 32, 2, padding="same"),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.3),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 256),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(256, 10),
    )


def autoencoder():
    return nn.Sequential(
        nn.Linear(28 * 28, 128),
        nn.ReLU(),
        nn.Linear(128, 64),
        nn.ReLU(),
        nn.Linear(64, 32),
        nn.ReLU(),
        nn.Linear(32, 64),
        nn.ReLU(),
        nn.Linear(64, 128),
        nn.ReLU(),
        nn.Linear(128, 28 * 28),
        nn.Sigmoid(),
    )


class RNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(28, 256, batch_first=True)
        self.fc = nn.Linear(256, 10)

    def forward(self, x):
        _, hidden = self.rnn(x)
        return self.fc(hidden[-1])


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(28, 128, batch_first=True)
        self.fc = nn.Linear(128, 10)

    def forward(self, x):
        _, (hidden, _) = self.lstm(x)
        return self.fc(hidden[-1])


class DBLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.both_ways = nn.LSTM(9, 64, batch_first=True, bidirectional=True)
        self.lstm = nn.LSTM(2 * 64, 64, batch_first=True)
        self.fc = nn.Linear(64, 6)

    def forward(self, x):
        x, _ = self.both_ways(x)
        _, (hidden, _) = self.lstm(x)
        return self.fc(hidden[-1])


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(28, 64)
        self.positions = nn.Parameter(0.02 * torch.randn(28, 64))
        layer = nn.TransformerEncoderLayer(
            64, 4, dim_feedforward=256, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(64), enable_nested_tensor=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(28))
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = self.embed(x) + self.positions
        return self.fc(self.encoder(x, mask=self.mask, is_causal=True)[:, -1])


class Bottleneck(nn.Module):
    """As in torchvision's resnet.py."""

    def __init__(self, inputs, filters, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, filters, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(filters)
        self.conv2 = nn.Conv2d(filters, filters, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(filters)
        self.conv3 = nn.Conv2d(filters, 4 * filters, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * filters)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride > 1 or inputs != 4 * filters:
            conv = nn.Conv2d(inputs, 4 * filters, 1, stride, bias=False)
            self.downsample = nn.Sequential(conv, nn.BatchNorm2d(4 * filters))

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


def resnet50():
    layers = [
        nn.Conv2d(3, FILTERS, 7, 2, padding=3, bias=False),
        nn.BatchNorm2d(FILTERS),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, padding=1),
    ]
    inputs = FILTERS
    for stage, depth in enumerate(DEPTHS):
        filters = FILTERS * 2**stage
        for number in range(depth):
            layers.append(Bottleneck(inputs, filters, 2 if stage and not number else 1))
            inputs = 4 * filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(inputs, 1000))


class Block(nn.Module):
    """As in nanoGPT's model.py."""

    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(WIDTH)
        self.c_attn = nn.Linear(WIDTH, 3 * WIDTH)
        self.c_proj = nn.Linear(WIDTH, WIDTH)
        self.ln_2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU("tanh"), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        batch, tokens, width = x.size()
        heads = (
            part.view(batch, tokens, HEADS, width // HEADS).transpose(1, 2)
            for part in self.c_attn(self.ln_1(x)).split(width, dim=2)
        )
        seen = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.c_proj(seen.transpose(1, 2).contiguous().view(batch, tokens, width))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(VOCABULARY, WIDTH)
        self.wpe = nn.Embedding(LENGTH, WIDTH)
        self.h = nn.ModuleList([Block() for _ in range(DEPTH)])
        self.ln_f = nn.LayerNorm(WIDTH)
        nn.init.normal_(self.wte.weight, std=0.02)

    def forward(self, x):
        positions = torch.arange(x.size(1))
        x = self.wte(x) + self.wpe(positions)
        for block in self.h:
            x = block(x)
        x = self.ln_f(x if self.training else x[:, [-1]])
        logits = nn.functional.linear(x, self.wte.weight)
        return logits.flatten(0, 1) if self.training else logits[:, 0]


MODELS = {
    "mlp": mlp,
    "cnn": cnn,
    "cnn_small": cnn_small,
    "rnn": RNN,
    "lstm": LSTM,
    "autoencoder": autoencoder,
    "dblstm": DBLSTM,
    "transformer": Transformer,
    "resnet50": resnet50,
    "gpt2": GPT2,
}
