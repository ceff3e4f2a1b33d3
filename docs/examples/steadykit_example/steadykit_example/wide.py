"""A network of existing layers, which every backend runs."""

from kit.workloads.workload import SGD, Dense, Workload

WIDE = Workload(
    name="wide",
    data="blobs",
    input_shape=(16,),
    classes=3,
    layers=(Dense(1024, "relu"), Dense(3)),
    optimizer=SGD(learning_rate=0.1),
)
