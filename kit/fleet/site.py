"""What ReFrame is told of the site: one system, whose partition has the scheduler that was asked for."""

from __future__ import annotations

from typing import Any

from kit.fleet.plan import FleetPlan

SLURM = ("squeue", "slurm")
SYSTEM = "kit"
STDOUT = {"type": "stream", "name": "stdout", "level": "info", "format": "%(message)s"}


def site_settings(plan: FleetPlan) -> dict[str, Any]:
    """Return ReFrame's settings, as its configuration has them."""
    # Begun again by Slurm, a job would wait for its own node for as long as that is down.
    access = ["--no-requeue", f"--partition={plan.partition}"] if plan.scheduler in SLURM else []
    partition: dict[str, Any] = {
        "name": "nodes",
        "scheduler": plan.scheduler,
        # The job's own script starts the kit: of a step of `srun` Slurm would pin the CPUs.
        "launcher": "local",
        "environs": ["builtin"],
        "access": [*access, *plan.job_options],
        "max_jobs": len(plan.nodes),
    }
    if plan.scheduler == "ssh":
        partition["sched_options"] = {"ssh_hosts": plan.nodes}
    return {
        "systems": [{"name": SYSTEM, "hostnames": [".*"], "partitions": [partition]}],
        # Its own are a file in /tmp, and figures that nobody asked for.
        "logging": [{"handlers": [STDOUT], "handlers_perflog": []}],
        "general": [{"check_search_recursive": False, "remote_detect": False}],
    }
