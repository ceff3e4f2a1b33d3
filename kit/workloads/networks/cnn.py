"""`cnn`, `cnn_sgd` and `cnn_small`: convolutional networks over images."""

import msgspec

from kit.workloads.layers import Conv2D, Dense, Dropout, Flatten, MaxPool2D
from kit.workloads.optimizers import SGD, Adadelta, Adam
from kit.workloads.workload import Workload

# Of the five-nets, batch-sweep and frameworks-cnn systems.
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

# As the frameworks-cnn system trains it.
CNN_SGD = msgspec.structs.replace(CNN, name="cnn_sgd", optimizer=SGD(learning_rate=0.01))

# Of the cnn-batch system.
CNN_SMALL = Workload(
    name="cnn_small",
    data="mnist",
    input_shape=(28, 28, 1),
    classes=10,
    layers=(
        Conv2D(64, (2, 2), "relu", "same"),
        MaxPool2D(2),
        Dropout(0.3),
        Conv2D(32, (2, 2), "relu", "same"),
        MaxPool2D(2),
        Dropout(0.3),
        Flatten(),
        Dense(256, "relu"),
        Dropout(0.5),
        Dense(10),
    ),
    optimizer=Adam(learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7),
)
