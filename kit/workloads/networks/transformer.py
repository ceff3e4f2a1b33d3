"""`transformer(width, depth, heads, length)`: decoder blocks over the pixels of an image, in `length` tokens."""

from kit.workloads.attention import DecoderBlock, LastToken, LayerNorm, Positions
from kit.workloads.layers import Dense
from kit.workloads.optimizers import Adam
from kit.workloads.workload import Family, Workload

PIXELS = 784


def build(width: int, depth: int, heads: int, length: int) -> Workload:
    """Return the network.

    Raises:
        ValueError: heads that do not divide the width, or a length that does not divide the pixels.
    """
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
        optimizer=Adam(learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7),
    )


TRANSFORMER = Family(
    name="transformer", data="mnist", defaults={"width": 64, "depth": 2, "heads": 4, "length": 28}, build=build
)
