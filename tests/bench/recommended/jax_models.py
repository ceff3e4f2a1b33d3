"""The networks in Flax NNX' own modules.

Recurrent ones are nnx.RNN around a cell, https://flax.readthedocs.io/en/stable/api_reference/flax.nnx/nn/recurrent.html
(of the two LSTM cells the optimized one). The transformer is made like the one of
https://flax.readthedocs.io/en/latest/examples/vit_training.html, with nnx.make_causal_mask. ResNet-50 is
made as in https://github.com/google/flax/blob/main/examples/imagenet/models.py, with its padding written out.
GPT-2 is made as in
https://docs.jaxstack.ai/en/latest/JAX_for_LLM_pretraining.html, with its table for the logits, too.
"""

from functools import partial

import jax.numpy as jnp
from flax import nnx
from recommended.sizes import DEPTH, DEPTHS, FILTERS, HEADS, LENGTH, VOCABULARY, WIDTH


class MLP(nnx.Module):
    def __init__(self, *, rngs):
        self.linear1 = nnx.Linear(784, 512, rngs=rngs)
        self.linear2 = nnx.Linear(512, 512, rngs=rngs)
        self.linear3 = nnx.Linear(512, 10, rngs=rngs)
        self.dropout1 = nnx.Dropout(rate=0.2, rngs=rngs)
        self.dropout2 = nnx.Dropout(rate=0.2, rngs=rngs)

    def __call__(self, x):
        x = self.dropout1(nnx.relu(self.linear1(x)))
        x = self.dropout2(nnx.relu(self.linear2(x)))
        return self.linear3(x)


class CNN(nnx.Module):
    def __init__(self, *, rngs):
        self.conv1 = nnx.Conv(1, 32, kernel_size=(3, 3), padding="VALID", rngs=rngs)
        self.conv2 = nnx.Conv(32, 64, kernel_size=(3, 3), padding="VALID", rngs=rngs)
        self.max_pool = partial(nnx.max_pool, window_shape=(2, 2), strides=(2, 2))
        self.dropout1 = nnx.Dropout(rate=0.25, rngs=rngs)
        self.linear1 = nnx.Linear(9216, 128, rngs=rngs)
        self.dropout2 = nnx.Dropout(rate=0.5, rngs=rngs)
        self.linear2 = nnx.Linear(128, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.conv1(x))
        x = self.dropout1(self.max_pool(nnx.relu(self.conv2(x))))
        x = x.reshape(x.shape[0], -1)
        x = self.dropout2(nnx.relu(self.linear1(x)))
        return self.linear2(x)


class SmallCNN(nnx.Module):
    def __init__(self, *, rngs):
        self.conv1 = nnx.Conv(1, 64, kernel_size=(2, 2), rngs=rngs)
        self.conv2 = nnx.Conv(64, 32, kernel_size=(2, 2), rngs=rngs)
        self.max_pool = partial(nnx.max_pool, window_shape=(2, 2), strides=(2, 2))
        self.dropout1 = nnx.Dropout(rate=0.3, rngs=rngs)
        self.dropout2 = nnx.Dropout(rate=0.3, rngs=rngs)
        self.linear1 = nnx.Linear(1568, 256, rngs=rngs)
        self.dropout3 = nnx.Dropout(rate=0.5, rngs=rngs)
        self.linear2 = nnx.Linear(256, 10, rngs=rngs)

    def __call__(self, x):
        x = self.dropout1(self.max_pool(nnx.relu(self.conv1(x))))
        x = self.dropout2(self.max_pool(nnx.relu(self.conv2(x))))
        x = x.reshape(x.shape[0], -1)
        x = self.dropout3(nnx.relu(self.linear1(x)))
        return self.linear2(x)


class Autoencoder(nnx.Module):
    def __init__(self, *, rngs):
        self.encoder = nnx.Sequential(
            *[nnx.Linear(784, 128, rngs=rngs), nnx.relu, nnx.Linear(128, 64, rngs=rngs), nnx.relu],
            *[nnx.Linear(64, 32, rngs=rngs), nnx.relu],
        )
        self.decoder = nnx.Sequential(
            *[nnx.Linear(32, 64, rngs=rngs), nnx.relu, nnx.Linear(64, 128, rngs=rngs), nnx.relu],
            *[nnx.Linear(128, 784, rngs=rngs), nnx.sigmoid],
        )

    def __call__(self, x):
        return self.decoder(self.encoder(x))


class RNN(nnx.Module):
    def __init__(self, *, rngs):
        self.rnn = nnx.RNN(nnx.SimpleCell(28, 256, rngs=rngs), return_carry=True, rngs=rngs)
        self.linear = nnx.Linear(256, 10, rngs=rngs)

    def __call__(self, x):
        hidden, _ = self.rnn(x)
        return self.linear(hidden)


class LSTM(nnx.Module):
    def __init__(self, *, rngs):
        self.lstm = nnx.RNN(nnx.OptimizedLSTMCell(28, 128, rngs=rngs), return_carry=True, rngs=rngs)
        self.linear = nnx.Linear(128, 10, rngs=rngs)

    def __call__(self, x):
        (_, hidden), _ = self.lstm(x)
        return self.linear(hidden)


class DBLSTM(nnx.Module):
    def __init__(self, *, rngs):
        forward, backward = (nnx.RNN(nnx.OptimizedLSTMCell(9, 64, rngs=rngs), rngs=rngs) for _ in range(2))
        self.both_ways = nnx.Bidirectional(forward, backward, rngs=rngs)
        self.lstm = nnx.RNN(nnx.OptimizedLSTMCell(2 * 64, 64, rngs=rngs), return_carry=True, rngs=rngs)
        self.linear = nnx.Linear(64, 6, rngs=rngs)

    def __call__(self, x):
        (_, hidden), _ = self.lstm(self.both_ways(x))
        return self.linear(hidden)


class Block(nnx.Module):
    def __init__(self, *, rngs):
        self.norm1 = nnx.LayerNorm(64, epsilon=1e-5, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(num_heads=4, in_features=64, decode=False, rngs=rngs)
        self.norm2 = nnx.LayerNorm(64, epsilon=1e-5, rngs=rngs)
        self.mlp = nnx.Sequential(
            nnx.Linear(64, 256, rngs=rngs), partial(nnx.gelu, approximate=False), nnx.Linear(256, 64, rngs=rngs)
        )

    def __call__(self, x, mask):
        x = x + self.attention(self.norm1(x), mask=mask)
        return x + self.mlp(self.norm2(x))


class Transformer(nnx.Module):
    def __init__(self, *, rngs):
        self.embed = nnx.Linear(28, 64, rngs=rngs)
        self.positions = nnx.Param(nnx.initializers.normal(0.02)(rngs.params(), (1, 28, 64)))
        self.blocks = nnx.List([Block(rngs=rngs) for _ in range(2)])
        self.norm = nnx.LayerNorm(64, epsilon=1e-5, rngs=rngs)
        self.linear = nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, x):
        x = self.embed(x) + self.positions
        mask = nnx.make_causal_mask(jnp.ones(x.shape[:2]))
        for block in self.blocks:
            x = block(x, mask)
        return self.linear(self.norm(x)[:, -1])


class ResNetBlock(nnx.Module):
    def __init__(self, inputs, filters, stride, *, rngs):
        conv = partial(nnx.Conv, use_bias=False, rngs=rngs)
        norm = partial(nnx.BatchNorm, momentum=0.9, epsilon=1e-5, rngs=rngs)
        self.conv1, self.norm1 = conv(inputs, filters, (1, 1)), norm(filters)
        self.conv2, self.norm2 = conv(filters, filters, (3, 3), strides=stride, padding=1), norm(filters)
        self.conv3, self.norm3 = conv(filters, 4 * filters, (1, 1)), norm(4 * filters)
        self.needs_projection = stride > 1 or inputs != 4 * filters
        if self.needs_projection:
            self.conv_proj, self.norm_proj = conv(inputs, 4 * filters, (1, 1), strides=stride), norm(4 * filters)

    def __call__(self, x):
        y = nnx.relu(self.norm1(self.conv1(x)))
        y = nnx.relu(self.norm2(self.conv2(y)))
        y = self.norm3(self.conv3(y))
        if self.needs_projection:
            x = self.norm_proj(self.conv_proj(x))
        return nnx.relu(x + y)


class ResNet50(nnx.Module):
    def __init__(self, *, rngs):
        self.conv_init = nnx.Conv(3, FILTERS, (7, 7), strides=2, padding=3, use_bias=False, rngs=rngs)
        self.bn_init = nnx.BatchNorm(FILTERS, momentum=0.9, epsilon=1e-5, rngs=rngs)
        blocks, inputs = [], FILTERS
        for stage, depth in enumerate(DEPTHS):
            filters = FILTERS * 2**stage
            for number in range(depth):
                blocks.append(ResNetBlock(inputs, filters, 2 if stage and not number else 1, rngs=rngs))
                inputs = 4 * filters
        self.blocks = nnx.List(blocks)
        self.linear = nnx.Linear(inputs, 1000, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.bn_init(self.conv_init(x)))
        x = nnx.max_pool(x, (3, 3), strides=(2, 2), padding=((1, 1), (1, 1)))
        for block in self.blocks:
            x = block(x)
        return self.linear(jnp.mean(x, axis=(1, 2)))


class GPT2Block(nnx.Module):
    def __init__(self, *, rngs):
        self.norm1 = nnx.LayerNorm(WIDTH, epsilon=1e-5, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(num_heads=HEADS, in_features=WIDTH, decode=False, rngs=rngs)
        self.norm2 = nnx.LayerNorm(WIDTH, epsilon=1e-5, rngs=rngs)
        self.linear1 = nnx.Linear(WIDTH, 4 * WIDTH, rngs=rngs)
        self.linear2 = nnx.Linear(4 * WIDTH, WIDTH, rngs=rngs)

    def __call__(self, x, mask):
        x = x + self.attention(self.norm1(x), mask=mask)
        return x + self.linear2(nnx.gelu(self.linear1(self.norm2(x))))


class GPT2(nnx.Module):
    def __init__(self, *, rngs):
        self.token_emb = nnx.Embed(VOCABULARY, WIDTH, rngs=rngs)
        self.pos_emb = nnx.Embed(LENGTH, WIDTH, rngs=rngs)
        self.blocks = nnx.List([GPT2Block(rngs=rngs) for _ in range(DEPTH)])
        self.norm = nnx.LayerNorm(WIDTH, epsilon=1e-5, rngs=rngs)
        self.deterministic = False  # `eval` sets it

    def __call__(self, x):
        mask = nnx.make_causal_mask(x)
        x = self.token_emb(x) + self.pos_emb(jnp.arange(x.shape[1])[None])
        for block in self.blocks:
            x = block(x, mask)
        x = self.norm(x)
        return self.token_emb.attend(x[:, -1] if self.deterministic else x)


MODELS = {
    "mlp": MLP,
    "cnn": CNN,
    "cnn_small": SmallCNN,
    "rnn": RNN,
    "lstm": LSTM,
    "autoencoder": Autoencoder,
    "dblstm": DBLSTM,
    "transformer": Transformer,
    "resnet50": ResNet50,
    "gpt2": GPT2,
}
