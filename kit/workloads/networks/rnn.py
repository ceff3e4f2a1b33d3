"""`rnn`: the plain recurrent network of the five-nets system, over the rows of an image."""

from kit.workloads.layers import Dense
from kit.workloads.optimizers import SGD
from kit.workloads.recurrent import SimpleRNN
from kit.workloads.workload import Workload

RNN = Workload(
    name="rnn",
    data="mnist",
    input_shape=(28, 28),
    classes=10,
    layers=(SimpleRNN(256), Dense(10)),
    optimizer=SGD(learning_rate=0.01),
)
