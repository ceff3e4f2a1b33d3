"""The observer test on demand (`kit doctor --observer`): one launch, made for it."""

from __future__ import annotations

from kit.backends.catalog import CATALOG
from kit.engines.interpreters import find_backend
from kit.engines.local import run_launch
from kit.engines.prepare import BackendMissingError
from kit.engines.run import usable_cpus
from kit.profile.examination import Observed
from kit.profile.launch import Launch, LaunchRequest, StepPlan
from kit.stats.observer_overhead import observer_overhead
from kit.suites.plan import plan_cells
from kit.suites.suite import Axes

# The smallest network trains in steps of milliseconds: what sampling costs weighs most there.
WORKLOAD = "mlp"
# The steady steps are there for the sampler's own CPU time and pace: thirty samples show both.
PLAN = StepPlan(warmup_s=2.0, warmup_steps_min=10, steady_s=3.0, steps_min=50, steps_max=50_000)


def request(observer_s: float) -> LaunchRequest:
    """A launch of the first framework that is installed, with `observer_s` seconds of blocks.

    Raises:
        BackendMissingError: none is installed.
    """
    backend = next((name for name in CATALOG if find_backend(name).version is not None), None)
    if backend is None:
        raise BackendMissingError(f"none of {', '.join(CATALOG)} is installed; install them with `make setup`")
    (cell,) = plan_cells(Axes(workloads=[WORKLOAD], backends=[backend], tasks=["train"]))
    cpus = usable_cpus()
    return LaunchRequest(
        cell=cell,
        round=0,
        plan=PLAN,
        data="synthetic",
        seed=0,
        threads=len(cpus),
        cpus=cpus,
        parity=False,
        evaluate=False,
        observer_s=observer_s,
    )


def observe(asked: LaunchRequest) -> Observed:
    """Run the launch. What it did not give is null, with the reason."""
    launch = run_launch(asked)
    used = launch.utilization
    steady_ns = next((phase.duration_ns for phase in launch.phases if phase.name == "steady"), None)
    return Observed(
        overhead=observer_overhead(launch),
        sampler_cpu_pct=None if used is None else used.sampler_cpu_pct,
        samples_per_s=None if used is None or not used.samples or not steady_ns else used.samples / (steady_ns / 1e9),
        reason=_why_unknown(launch),
    )


def _why_unknown(launch: Launch) -> str | None:
    if launch.utilization is not None:
        return launch.utilization.reasons.get("sampler_cpu_pct")
    return launch.failure.in_words if launch.failure is not None else "the launch recorded no utilization"
