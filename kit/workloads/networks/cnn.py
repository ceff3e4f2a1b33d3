"""`cnn`: the convolutional network of the five-nets, batch-sweep and frameworks-cnn systems."""

from kit.workloads.layers import Conv2D, Dense, Dropout, Flatten, MaxPool2D
from kit.workloads.optimizers import Adadelta
from kit.workloads.workload import Workload

CNN = Workload(
    name="cnn",
    data="mnist",
    input_shape=(28, 28, 1),
    classes=10,
    layers=(
        Conv2D(32, (3, 3), "relu"),
        Conv2D(64, (3, 3), "relu"),
        MaxPool2D(2),
        Dropout(0.25),
        Flatten(),
        Dense(128, "relu"),
        Dropout(0.5),
        Dense(10),
    ),
    optimizer=Adadelta(learning_rate=0.001, rho=0.95, epsilon=1e-7),
)
