"""`autoencoder`: the deep autoencoder of the five-nets system."""

from kit.workloads.layers import Dense
from kit.workloads.optimizers import Adam
from kit.workloads.workload import Workload

AUTOENCODER = Workload(
    name="autoencoder",
    data="mnist",
    input_shape=(784,),
    classes=10,
    layers=(
        Dense(128, "relu"),
        Dense(64, "relu"),
        Dense(32, "relu"),
        Dense(64, "relu"),
        Dense(128, "relu"),
        Dense(784, "sigmoid"),
    ),
    optimizer=Adam(learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7),
    loss="reconstruction",
)
