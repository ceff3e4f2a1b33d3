"""ReFrame's check: `kit run` on each node. ReFrame loads this file and schedules, limits and repeats the jobs."""

from __future__ import annotations

import os
import shlex
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn

from kit.environment import FLEET_PLAN
from kit.fleet.reframe_run import read_plan

PLAN = read_plan(os.environ[FLEET_PLAN])


@rfm.simple_test
class KitRun(rfm.RunOnlyRegressionTest):  # type: ignore[misc] # untyped
    """One run on one node, which it has to itself; its profile is what counts."""

    # `parameter`, `run_before` and `sanity_function` are there in ReFrame's class bodies.
    node = parameter(PLAN.nodes)  # type: ignore[name-defined] # noqa: F821
    valid_systems = ["*"]  # noqa: RUF012 - ReFrame's
    valid_prog_environs = ["*"]  # noqa: RUF012
    exclusive_access = True
    executable = "sh"

    @run_before("run")  # type: ignore[name-defined, untyped-decorator] # noqa: F821
    def choose_node(self) -> None:
        """Choose the node and what runs there."""
        self.job.pin_nodes = [self.node]
        self.executable_opts = ["-c", shlex.quote(PLAN.script(self.node))]
        if PLAN.time_limit_s is not None:
            self.time_limit = f"{PLAN.time_limit_s}s"

    @sanity_function  # type: ignore[name-defined, untyped-decorator] # noqa: F821
    def has_profile(self) -> Any:  # noqa: ANN401 - a deferred expression
        """Return whether the run is whole."""
        return sn.assert_true(PLAN.is_whole(self.node), msg="no profile")
