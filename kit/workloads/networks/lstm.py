"""`lstm`: the long short-term memory of the five-nets system, over the rows of an image."""

from kit.workloads.layers import Dense
from kit.workloads.optimizers import Adam
from kit.workloads.recurrent import LSTM
from kit.workloads.workload import Workload

LSTM_ROWS = Workload(
    name="lstm",
    data="mnist",
    input_shape=(28, 28),
    classes=10,
    layers=(LSTM(128), Dense(10)),
    optimizer=Adam(learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7),
)
