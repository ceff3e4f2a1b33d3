"""Reasons as sentences: a template per code. A code that is not here, as from a newer kit, is shown as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kit.profile.reason import Reason, Value
from kit.report.plain import one_line
from kit.report.quantity import by_name
from kit.report.reasons_conditions import CONDITION_REASONS
from kit.report.reasons_machine import MACHINE_REASONS

# Templates name values; `{needed_b}` is shown in the unit that its name ends in, `{needed_b:,}` as Python formats it.
Templates = dict[str, str]


class _Shown(NamedTuple):
    """A value in a template."""

    name: str
    value: Value

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else by_name(self.name, self.value)


def fill(template: str, values: Mapping[str, Value]) -> str:
    """Return the template with its values, in one line.

    Raises:
        KeyError, ValueError: a value is missing or is not what the template expects.
    """
    return one_line(template.format_map({name: _Shown(name, value) for name, value in values.items()}), 2000)


def sentence(reason: Reason) -> str:
    """Return the reason in words, without a full stop; an unknown one as its code and values."""
    return said(REASONS, reason.code, reason.values)


def said(templates: Templates, code: str, values: Mapping[str, Value]) -> str:
    """Return a code in the words of its template; without one, or with values of another kit, as it is."""
    if code in templates:
        try:
            return fill(templates[code], values)
        except (KeyError, ValueError, IndexError, AttributeError):
            pass
    listed = ", ".join(f"{one_line(name)} {by_name(name, value)}" for name, value in values.items())
    plain = one_line(code.replace("_", " "))
    return f"{plain} ({listed})" if listed else plain


REASONS: Templates = {
    **MACHINE_REASONS,
    **CONDITION_REASONS,
    # Why a launch failed.
    "exception": "{type}: {message}",
    "program_raised": "{type}: {message} ({file}, line {line})",
    "refused": "{message}",
    "output_not_finite": "a loss or an output is not finite",
    "out_of_memory": "killed for lack of memory ({signal})",
    "signal": "killed by {signal}",
    "exit_code": "ended with exit code {exit_code}: {message}",
    "closed_its_pipes": "closed its pipes to the runner",
    "protocol": "its answer is not this kit's: {message}",
    "phase_timeout": "no answer within {limit_s}",
    "does_not_stop": "not stopped within {limit_s} of SIGSTOP",
    "shared_process_ended": "its process ended while it measured {cell}",
    # Turns, data, backends.
    "lack_of_memory": "a further member needs {needed_b}, {available_b} are available",
    "fit_runs_alone": "a fit runs alone from its first to its last step",
    "exclusive_device": "only one process at a time may hold the {device}",
    "synthetic_data": "synthetic data has no accuracy",
    "download_failed": "{file} cannot be downloaded ({tried})",
    "no_mirror": "{file} is not there, and no mirror is known that has it",
    "data_not_mounted": "{data} is not in {folder}; on the host: `kit data fetch {data}`, and mount that folder, "
    "-v ~/.cache/steadykit:/data:ro (`kit launch` mounts it)",
    "folder_not_writable": "{folder} cannot be written: {error}",
    "not_installed": "{backend} is not installed",
    "pool_threads_not_listed": "its thread pool does not list its threads",
    "eager": "eager mode compiles nothing",
    "own_program": "a program compiles as it likes",
    "threads_by_environment": "set by environment variables, which its framework reads",
    "run_resumed": "the run was resumed: counters began anew",
    # Marks.
    "trending": "its ratio to the others moved by {change_pct} from the first to the last third of a round",
    "two_modes": "runs in two modes: {fast_ns} and {slow_ns}",
    "throttled": "throttled by cgroup quota {share_pct} of the time",
    "stalls": "stalls for {share_pct} of its time",
    "contended": "contended: others took {share_pct} of its CPUs' time",
    "process_ended_early": "its process ended later, while it measured {cell}",
    "step_too_short_for_clock": "a step of {step_ns} is shorter than {shortest_ns}, which the clock may time singly",
    "recompiled": "compiled again {count} times after the first step",
    "graph_breaks": "{count} graph breaks",
    # Notes beside a comparison.
    "too_few_rounds": "preliminary: {rounds} of at least {needed} rounds that a verdict needs",
    "preliminary": "preliminary: {rounds} rounds ({needed} and more settle smaller differences)",
    "parity_agrees": "parity: the first {losses} losses agree within {difference:.0e}",
    "parity_equal": "parity: the first {losses} losses are equal",
    "parity_differs": "PARITY FAILED: {cell} computes other losses than the rest ({difference:.0e} apart)",
    "own_programs": "programs bring their own data and weights: that they compute the same is not proved",
    "energy_not_measured": "energy: not measured (kit doctor says why)",
    "data_synthetic": "synthetic data in the shapes of a real set: times are valid, there is no accuracy",
    "images": "images: {listed}",
    "images_same": "two of the images are one and the same: the difference between them is chance",
    "interrupted": "{profile} was interrupted and lacks rounds; `kit run --resume --out FILE` measures them "
    "(or the `kit launch` that began it)",
    "launches_failed": "{failed} of {launches} launches of {cell} failed",
    "sequential": "members ran one after another, not interleaved, in {sequential} of {rounds} rounds: intervals are "
    "wider",
    "skipped": "{backend} was skipped",
    "process_shared": "* of a process that held several cells",
    "warm_start": "w  built in a process that had run another program: without its start and import",
    "by_latency": "judged by latency: the median of steps that are waited for one by one; fits by their whole time",
    "runs_needed": "a verdict needs {needed} runs a side (kit compare before*.json --against after*.json); "
    "or measure both as variants in one run: kit run --variant",
    "runs_apart": "one side's runs all came before the other's: what the machine did in between is in the difference; "
    "alternate them where you can",
    "versions": "{backend}: {listed}",
    "per_sample": "batches are compared by time per sample",
    # Blank cells of a suite's own table.
    "not_measured": "not measured",
    "not_published": "not published",
    "part_of_a_fit": "a part of a fit has no score (leave out --quick, or fit_steps)",
    "computed_times": "≈ computed: all updates × the mean step of the part that was measured",
    "one_epoch": "the first epoch is left out, and there was no other",
    "no_classes": "it reconstructs its input and tells no classes apart",
    "not_like_the_cpus": "not comparable with the CPU's: {kind} {value}, there {of_cpu}",
    "gains_are_over_this": "gains are over this",
    "no_cpu_to_gain_over": "no CPU's time to compare with",
    "same_run": "given more than once, counted once: {profiles}",
}
