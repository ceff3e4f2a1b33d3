"""The networks in PyTorch's own modules.

The transformer is nn.TransformerEncoder with a causal mask, pre-norm, as in
https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoderLayer.html; recurrent networks take the last
hidden state that nn.RNN and nn.LSTM return.
"""

import torch
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


MODELS = {
    "mlp": mlp,
    "cnn": cnn,
    "cnn_small": cnn_small,
    "rnn": RNN,
    "lstm": LSTM,
    "autoencoder": autoencoder,
    "dblstm": DBLSTM,
    "transformer": Transformer,
}
