"""`cnn_sgd`: `cnn` as the frameworks-cnn system trains it."""

import msgspec

from kit.workloads.networks.cnn import CNN
from kit.workloads.optimizers import SGD

CNN_SGD = msgspec.structs.replace(CNN, name="cnn_sgd", optimizer=SGD(learning_rate=0.01))
