"""`mlp`: the multi-layer perceptron of the five-nets and batch-sweep systems."""

from kit.workloads.layers import Dense, Dropout
from kit.workloads.optimizers import RMSprop
from kit.workloads.workload import Workload

MLP = Workload(
    name="mlp",
    data="mnist",
    input_shape=(784,),
    classes=10,
    layers=(
        Dense(512, "relu"),
        Dropout(0.2),
        Dense(512, "relu"),
        Dropout(0.2),
        Dense(10),
    ),
    optimizer=RMSprop(learning_rate=0.001, rho=0.9, epsilon=1e-7),
)
