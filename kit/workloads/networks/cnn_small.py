"""`cnn_small`: the convolutional network of the cnn-batch system."""

from kit.workloads.layers import Conv2D, Dense, Dropout, Flatten, MaxPool2D
from kit.workloads.optimizers import Adam
from kit.workloads.workload import Workload

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
