"""The lines above the tables: what was compared, where it ran, and how rows and columns call the sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_uppercase

from kit.compare.comparison import Comparison, Headline
from kit.profile.cell import OWN
from kit.profile.facts import BARE_METAL
from kit.report.plain import one_line
from kit.report.quantity import counted, moment, several
from kit.workloads.device_operations import OPERATIONS

# A longer name, of a cell and whose it is, may be cut in each row: a letter stands for the side.
LABELLED_MAX = 18
# A list with more sizes is nothing to read.
SIZES_MAX = 6
PLATFORMS_LISTED_MAX = 12
DATA_NAMES = {"mnist": "MNIST", "uci_har": "UCI-HAR"}
# What platforms may differ in apart from the device. The headline names it where it differs from the baseline's.
NAMED_ABOVE = {"workload": "", "task": "", "batch": "batch ", "precision": "", "feed": "feed "}


def sides_of(comparison: Comparison) -> tuple[list[str], dict[str, str]]:
    """Return the sides that are next to each other, one without a name where none are, and what tables call a side.

    A run with a long label is called by a letter, a platform by its device alone. A platform that shares its device
    with another has its whole name; other sides have no short name.
    """
    labels = [head.label for head in comparison.headlines]
    if comparison.kind == "platforms":
        sides = comparison.sides or labels
        devices = [side.partition(" · ")[0] for side in sides]
        named = zip(sides, devices, strict=True)
        return sides, {side: one_line(device if devices.count(device) == 1 else side) for side, device in named}
    longest = max((len(row.name) for row in comparison.rows), default=0)
    has_letters = comparison.kind == "runs" and longest > LABELLED_MAX and len(labels) <= len(ascii_uppercase)
    return [""], dict(zip(labels, ascii_uppercase, strict=False)) if has_letters else {}


def headline(comparison: Comparison, titles: Mapping[str, str], *, wide: bool = False) -> list[str]:
    """Return what was compared: two lines for one run, a line a side for several; with `wide` the rule, too."""
    rule, heads = f" (rule {comparison.rule})" if wide else "", comparison.headlines
    if comparison.kind == "runs" or (comparison.sides and len(heads) > 1):
        short = sides_of(comparison)[1] if comparison.kind == "runs" else {}
        names = [f"{short[head.label]}  {head.label}" if head.label in short else head.label for head in heads]
        ran = [" · ".join([head.suite, *_ran(head), f"kit {head.kit}"]) for head in heads[:SIZES_MAX]]
        lines = [f"{one_line(f'{name}: {words}')}{rule}" for name, words in zip(names, ran, strict=False)]
        more = len(heads) - len(lines)
        return [*lines, f"and {more} more"] if more else lines
    axes = {axis: list(dict.fromkeys(value for head in heads for value in head.axes[axis])) for axis in heads[0].axes}
    are_programs = axes["precision"] == [OWN]
    are_operations = not are_programs and {*axes["workload"]} <= OPERATIONS.keys()
    noun = "program" if are_programs else "operation" if are_operations else "network"
    crossed = [_counted_or_named(axes["workload"], noun)]
    if not are_programs:
        crossed.append(_counted_or_named([titles.get(name, name) for name in axes["backend"]], "framework"))
    crossed += [] if are_operations else ["+".join(axes["task"])]
    data = dict.fromkeys(name for head in heads for name in head.data)
    what = [
        " × ".join(crossed) + ("" if heads[1:] else f" on {'+'.join(axes['device'])}"),
        "" if axes["devices"] == ["1"] else f"{_sizes(axes['devices'])} devices",
        "" if are_operations else f"batch {_sizes(axes['batch'])}",
        ", ".join(precision for precision in axes["precision"] if precision != OWN),
        ", ".join(DATA_NAMES.get(name, name) for name in data),
        counted(len(heads), "platform") if heads[1:] else counted(heads[0].rounds, "round"),
    ]
    listed = ", ".join(part for part in what if part)
    if not heads[1:]:
        (head,) = heads
        label = f"{head.given_label} · " if head.given_label else ""
        where = " · ".join([*device_words(head), moment(head.created), f"kit {head.kit}{rule}"])
        return [one_line(f"{label}{head.suite}: {listed}"), one_line(where)]
    suites = " and ".join(dict.fromkeys(name for head in heads for name in head.suite.split(" and ")))
    lines = [one_line(f"{suites}: {listed}{rule}")]
    for head in heads[:PLATFORMS_LISTED_MAX]:
        # In what the platform differs from the first.
        apart = [
            f"{prefix}{several(head.axes[axis])}"
            for axis, prefix in NAMED_ABOVE.items()
            if sorted(head.axes[axis]) != sorted(heads[0].axes[axis])
        ]
        apart += [f"data {several(head.data)}"] if sorted(head.data) != sorted(heads[0].data) else []
        lines.append(one_line(f"{head.label}: {' · '.join(_ran(head, apart))}"))
    more = len(heads) - PLATFORMS_LISTED_MAX
    return [*lines, f"and {counted(more, 'platform')} more"] if more > 0 else lines


def _ran(head: Headline, apart: Sequence[str] = ()) -> list[str]:
    """Return on which devices a side ran, what is `apart`, ``3 runs of 4 to 8 rounds``, and when."""
    more = f" to {head.rounds_max}" if head.rounds_max > head.rounds else ""
    rounds = f"{counted(head.profiles, 'run')} of {head.rounds}{more} {'round' if head.rounds_max == 1 else 'rounds'}"
    return [*device_words(head), *apart, rounds, moment(head.created)]


def device_words(head: Headline) -> list[str]:
    """Return the devices of a run with their buses and counts: ``NVIDIA H100 80GB HBM3 (bus 0000:1b:00, 1 of 8)``.

    The processor that feeds an accelerator stands behind it.
    """
    words = []
    for device in head.devices:
        details = [f"bus {', '.join(device.device_ids)}"] if device.device_ids else []
        details += [f"{device.used} of {device.present}"] if device.present > device.used else []
        if device.model != head.cpu:
            words.append(device.model + (f" ({', '.join(details)})" if details else ""))
    is_guest = head.hypervisor not in (None, BARE_METAL)
    cpus = f"{head.cpus} vCPUs ({head.hypervisor})" if is_guest else counted(head.cpus or 0, "CPU")
    return [*words, f"{head.cpu}, {cpus}"]


def _sizes(values: Sequence[str]) -> str:
    return ", ".join(values) if len(values) <= SIZES_MAX else f"{values[0]} to {values[-1]} ({len(values)} sizes)"


def _counted_or_named(names: Sequence[str], noun: str) -> str:
    return names[0] if len(names) == 1 else counted(len(names), noun)
