"""The cases of a benchmark, each measured in a process of its own: no framework meets what another left behind.

The child is the same script with the same options and `--child`, which says which case is its own. Its answer is JSON
in the last line of its standard output: what a framework prints stands before it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from itertools import product
from typing import NamedTuple

BACKENDS = ("tensorflow", "torch", "jax")
WORKLOADS = ("mlp", "cnn")
TASKS = ("train", "infer")


class Case(NamedTuple):
    workload: str
    task: str
    backend: str


class ChildError(Exception):
    """The child ended without an answer; the message is its standard error, or its exit code if that is empty."""


def case_parser(description):
    """The options every benchmark of cases has; `--child` is the benchmark's own and its users need not know it."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=BACKENDS, action="append")
    parser.add_argument("--workload", choices=WORKLOADS, action="append")
    parser.add_argument("--task", choices=TASKS, action="append")
    parser.add_argument("--child", nargs=len(Case._fields), help=argparse.SUPPRESS)
    return parser


def chosen_cases(arguments):
    """Every combination of what was asked for; what was not asked for is taken whole."""
    return [
        Case(*names)
        for names in product(arguments.workload or WORKLOADS, arguments.task or TASKS, arguments.backend or BACKENDS)
    ]


def measure_in_child(case):
    """What the child answers, decoded. Raises ChildError."""
    command = [sys.executable, *sys.argv, "--child", *case]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    if child.returncode:
        raise ChildError(child.stderr.strip() or f"exit code {child.returncode}")
    return json.loads(child.stdout.splitlines()[-1])


def answer(found):
    """Said by the child, once it has measured."""
    print(json.dumps(found))
