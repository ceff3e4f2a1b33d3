"""The workloads there are, by name."""

from kit.workloads.cnn import CNN
from kit.workloads.mlp import MLP
from kit.workloads.workload import Workload

WORKLOADS: dict[str, Workload] = {workload.name: workload for workload in (MLP, CNN)}
