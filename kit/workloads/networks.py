"""The networks: adding one is adding an entry to `NETWORKS`. Those of a `NetworkFamily` differ in whole numbers."""

from __future__ import annotations

import msgspec

from kit.workloads.workload import (
    LSTM,
    SGD,
    Adadelta,
    Adam,
    AveragePool,
    Bottleneck,
    Conv2D,
    ConvolutionStem,
    DecoderBlock,
    Dense,
    Dropout,
    Embedding,
    Flatten,
    LastToken,
    LayerNorm,
    MaxPool2D,
    NetworkFamily,
    Positions,
    RMSprop,
    SimpleRNN,
    TiedLogits,
    Workload,
)

ADAM = Adam(learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7)
PIXELS = 784
# A hundred times as many layers as any network of its kind has; a list of a billion would fill the memory.
LAYERS_MAX = 10_000
LAST_UNITS = 64  # of the last LSTM of a deep `dblstm`
IMAGE_SIDE = 224
RESNET50_DEPTHS = (3, 4, 6, 3)  # He et al. 2016, "Deep residual learning for image recognition", table 1
GPT2_TOKENS, GPT2_VOCABULARY = 1024, 50_257

# The five-nets, batch-sweep and frameworks-cnn systems have this network.
CNN = Workload(
    name="cnn", data="mnist", input_shape=(28, 28, 1), classes=10,
    layers=(
        Conv2D(32, (3, 3), "relu"), Conv2D(64, (3, 3), "relu"), MaxPool2D(2), Dropout(0.25), Flatten(),
        Dense(128, "relu"), Dropout(0.5), Dense(10),
    ),
    optimizer=Adadelta(learning_rate=0.001, rho=0.95, epsilon=1e-7),
)  # fmt: skip


def _check_depth(name: str, layers: int) -> None:
    if layers > LAYERS_MAX:
        raise ValueError(f"{name} is {layers:,}; give at most {LAYERS_MAX:,}")


def _dblstm(layers: int, units: int) -> Workload:
    """Return `layers - 1` bidirectional LSTMs and one LSTM of 64 units; one layer is bidirectional.

    Raises:
        ValueError: too many layers.
    """
    _check_depth("layers", layers)
    lstms = [LSTM(units, sequences=True, bidirectional=True)] * (layers - 1)
    lstms.append(LSTM(LAST_UNITS) if lstms else LSTM(units, bidirectional=True))
    return Workload(
        name="dblstm", data="uci_har", input_shape=(128, 9), classes=6, layers=(*lstms, Dense(6)), optimizer=ADAM
    )


def _transformer(width: int, depth: int, heads: int, length: int) -> Workload:
    """Return decoder blocks over the pixels of an image, in `length` tokens.

    Raises:
        ValueError: heads that do not divide the width, a length that does not divide the pixels, or too many blocks.
    """
    _check_depth("depth", depth)
    if width % heads:
        raise ValueError(f"width {width} is not a multiple of heads {heads}; change one")
    if PIXELS % length:
        raise ValueError(f"length {length} does not divide an image's {PIXELS} pixels; give 28 or another divisor")
    blocks = [DecoderBlock(heads)] * depth
    return Workload(
        name="transformer",
        data="mnist",
        input_shape=(length, PIXELS // length),
        classes=10,
        layers=(Dense(width), Positions(), *blocks, LayerNorm(), LastToken(), Dense(10)),
        optimizer=ADAM,
    )


def _resnet50(side: int, filters: int) -> Workload:
    """Return ResNet-50, over images of `side` x `side`, with `filters` in its first convolution.

    Raises:
        ValueError: larger images than the data has.
    """
    if side > IMAGE_SIDE:
        raise ValueError(f"side {side} is more than the {IMAGE_SIDE} pixels of an image; give at most {IMAGE_SIDE}")
    blocks = [
        Bottleneck(filters * 2**stage, stride=2 if stage and not number else 1)
        for stage, depth in enumerate(RESNET50_DEPTHS)
        for number in range(depth)
    ]
    return Workload(
        name="resnet50",
        data="images",
        input_shape=(side, side, 3),
        classes=1000,
        layers=(ConvolutionStem(filters), *blocks, AveragePool(), Dense(1000)),
        optimizer=SGD(learning_rate=0.01),
    )


def _gpt2(width: int, depth: int, heads: int, length: int, vocabulary: int) -> Workload:
    """Return a decoder as GPT-2 is one, without its dropout.

    Radford et al. 2019, "Language models are unsupervised multitask learners"; the defaults are its smallest.

    Raises:
        ValueError: heads that do not divide the width, a length without an answer or beyond the table, or too large.
    """
    _check_depth("depth", depth)
    if width % heads:
        raise ValueError(f"width {width} is not a multiple of heads {heads}; change one")
    if not 2 <= length <= GPT2_TOKENS:  # noqa: PLR2004 - a token, and one that follows
        raise ValueError(f"length is {length:,}; give 2 to {GPT2_TOKENS:,} tokens")
    if vocabulary > GPT2_VOCABULARY:
        raise ValueError(f"vocabulary is {vocabulary:,}; give at most {GPT2_VOCABULARY:,}")
    blocks = [DecoderBlock(heads, gelu="tanh")] * depth
    return Workload(
        name="gpt2",
        data="tokens",
        input_shape=(length,),
        classes=vocabulary,
        layers=(Embedding(vocabulary, width), Positions(), *blocks, LayerNorm(), TiedLogits(vocabulary)),
        optimizer=ADAM,
    )


NETWORKS: list[Workload | NetworkFamily] = [
    # The deep autoencoder of the five-nets system.
    Workload(
        name="autoencoder", data="mnist", input_shape=(784,), classes=10,
        layers=(
            Dense(128, "relu"), Dense(64, "relu"), Dense(32, "relu"),
            Dense(64, "relu"), Dense(128, "relu"), Dense(784, "sigmoid"),
        ),
        optimizer=ADAM, loss="reconstruction",
    ),
    CNN,
    # The frameworks-cnn system trains it so.
    msgspec.structs.replace(CNN, name="cnn_sgd", optimizer=SGD(learning_rate=0.01)),
    # The cnn-batch system has this network.
    Workload(
        name="cnn_small", data="mnist", input_shape=(28, 28, 1), classes=10,
        layers=(
            Conv2D(64, (2, 2), "relu", "same"), MaxPool2D(2), Dropout(0.3),
            Conv2D(32, (2, 2), "relu", "same"), MaxPool2D(2), Dropout(0.3),
            Flatten(), Dense(256, "relu"), Dropout(0.5), Dense(10),
        ),
        optimizer=ADAM,
    ),
    # The five-nets system has the next three, two of them over the rows of an image.
    Workload(
        name="lstm", data="mnist", input_shape=(28, 28), classes=10, layers=(LSTM(128), Dense(10)), optimizer=ADAM,
    ),
    Workload(
        name="mlp", data="mnist", input_shape=(784,), classes=10,
        layers=(Dense(512, "relu"), Dropout(0.2), Dense(512, "relu"), Dropout(0.2), Dense(10)),
        optimizer=RMSprop(learning_rate=0.001, rho=0.9, epsilon=1e-7),
    ),
    Workload(
        name="rnn", data="mnist", input_shape=(28, 28), classes=10, layers=(SimpleRNN(256), Dense(10)),
        optimizer=SGD(learning_rate=0.01),
    ),
    # The deep bidirectional LSTM of the dblstm-har system, over windows of nine signals.
    NetworkFamily(name="dblstm", data="uci_har", build=_dblstm, defaults={"layers": 2, "units": 64}),
    NetworkFamily(
        name="transformer", data="mnist", build=_transformer,
        defaults={"width": 64, "depth": 2, "heads": 4, "length": 28},
    ),
    # Networks that load an accelerator; their data is made.
    NetworkFamily(name="resnet50", data="images", build=_resnet50, defaults={"side": IMAGE_SIDE, "filters": 64}),
    NetworkFamily(
        name="gpt2", data="tokens", build=_gpt2,
        defaults={"width": 768, "depth": 12, "heads": 12, "length": GPT2_TOKENS, "vocabulary": GPT2_VOCABULARY},
    ),
]  # fmt: skip
