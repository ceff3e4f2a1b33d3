"""Which tool wrote a log of power, by its first lines, and where its rows have times and values.

    a meter's own CSV   time,power_w or time,energy_j                                     the wall
    PTDaemon            Time,12-23-2020 10:21:51.496,Watts,22.95,…                        the wall
    yokotool            T,P,…   a Yokogawa, as Intel's stats-collect reads it             the wall
    nvidia-smi          timestamp, index, power.draw [W], …       a row a GPU             boards
    tegrastats          01-31-2026 12:00:00 RAM … VDD_IN 5122mW/5087mW …                  a module, or rails
    turbostat           Time_Of_Day_Seconds … PkgWatt             means of an interval    packages
    perf stat -I -x,    1.001048,19.10,Joules,power/energy-pkg/   joules of an interval   packages

To add a tool, write how it is recognized, and its entry in `_READ`; one that cannot work has an entry in `_REFUSED`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from kit.compare.log_times import CELL_MAX
from kit.errors import KitError
from kit.printable import printable_line

# NVML's mean over a second, and up to half a second of delay (docs/explanation/energy.md).
BOARD_LAG_MAX_NS = 1_500_000_000
# Times in whole seconds are cut: they are taken for the middle of their second.
HALF_SECOND_NS = 500_000_000
# What a tool is, the begin of a line shows; a pattern may take long on more.
LINE_LOOKED_AT = 512
# PTDaemon's value of what an analyzer does not give.
PTDAEMON_NOTHING = -1.0

Covers = Literal["wall", "gpu", "package", "module", "rails"]
# power: of the moment; counter: joules that add up; mean: watts over the time since the row before; joules: over it.
Form = Literal["power", "counter", "mean", "joules"]


class MeterFileError(KitError):
    """A file that cannot be read as a log of power."""


class Log(NamedTuple):
    """How the rows of a log make readings."""

    tool: str
    covers: Covers
    values: Mapping[str, int]  # name -> column
    time: int = 0  # column
    separator: str = ","
    form: Form = "power"
    usual: Sequence[str] = ()  # values that are taken unless somebody names others; none: somebody has to
    keys: Sequence[int] = ()  # columns that name what a row is of, the best first
    usual_key: str = ""  # a part of the first of these; empty: somebody has to choose among several
    only: tuple[int, str] | None = None  # column, and what it has in the rows that count
    header: str = ""  # which may come again
    unit: str = ""  # behind each value
    scale: float = 1.0
    fraction: int | None = None  # column of the decimals, where a decimal comma separated them
    nothing: float | None = None  # value of what was not read
    lag_max_ns: int = 0
    error_ns: int = 0  # of its times
    begin: str | None = None  # when seconds began to count, in local time; empty: it does not say; null: they are dated
    is_own: bool = False  # each row has to be one; a log of another tool has messages between its rows
    pattern: re.Pattern[str] | None = None  # time, and all else, of a row that is no table's
    named_values: re.Pattern[str] | None = None  # name and value, in the rest of such a row


def cells_of(line: str, separator: str) -> list[str]:
    """Return the cells of a line."""
    return [cell.strip() for cell in line.split(separator)]


def recognized(file: Path, head: Sequence[str]) -> Log:
    """Return how a log is read that begins with these lines.

    Raises:
        MeterFileError: it is no log of power, or one that cannot work.
    """
    if not "".join(head).strip():
        raise MeterFileError(f"{file}: the file is empty; begin it with time,power_w or time,energy_j")
    for read in _READ:
        if (log := read(head)) is not None:
            return log
    text = "".join(f"{line[:LINE_LOOKED_AT]}\n" for line in head)
    for pattern, why in _REFUSED:
        if re.search(pattern, text, re.MULTILINE):
            raise MeterFileError(f"{file}: {why}")
    shown = printable_line(head[0].strip()[:CELL_MAX])
    raise MeterFileError(
        f"{file}: the header is {shown!r}; begin it with time,power_w or time,energy_j, or give a log of nvidia-smi, "
        "PTDaemon, yokotool, tegrastats, turbostat or perf stat"
    )


def _own(head: Sequence[str]) -> Log | None:
    header = head[0].strip()
    forms: dict[str, Form] = {"time,power_w": "power", "time,energy_j": "counter"}
    name = header.partition(",")[2]
    return Log("", "wall", {name: 1}, form=forms[header], usual=[name], is_own=True) if header in forms else None


def _ptdaemon(head: Sequence[str]) -> Log | None:
    """MLPerf's and SPEC's: names and values in turn, of which the first watts are the sum of all channels."""
    if not re.match(r"Time,\d\d-\d\d-\d{4} \d\d:\d\d:\d\d\.\d+,Watts,", head[0]):
        return None
    return Log("PTDaemon", "wall", {"Watts": 3}, time=1, usual=["Watts"], nothing=PTDAEMON_NOTHING)


def _yokotool(head: Sequence[str]) -> Log | None:
    names = cells_of(head[0], ",")
    if not {"T", "P"} <= {*names}:
        return None
    return Log("yokotool", "wall", {"P": names.index("P")}, time=names.index("T"), usual=["P"], header=head[0].strip())


def _nvidia_smi(head: Sequence[str]) -> Log | None:
    """A row a GPU and poll. What a board draws at the moment says more of a block than its mean over a second."""
    header = next((line for line in head if "power.draw" in line), "")
    names = [name.partition(" [")[0].lower() for name in cells_of(header, ",")]
    draws = ("power.draw.instant", "power.draw", "power.draw.average")
    values = {name: names.index(name) for name in draws if name in names}
    if "timestamp" not in names or not values:
        return None
    keys = [names.index(name) for name in ("index", "uuid", "pci.bus_id", "serial") if name in names]
    rows = [cells for line in head if len(cells := cells_of(line, ",")) == len(names) and line != header]
    # Older boards give a mean alone, and [N/A] for the moment.
    read = [name for name, column in values.items() if any(cells[column][:1].isdigit() for cells in rows)]
    return Log(
        "nvidia-smi", "gpu", values, time=names.index("timestamp"), usual=[*read, *values][:1], keys=keys,
        header=header.strip(), unit=" W", lag_max_ns=BOARD_LAG_MAX_NS,
    )  # fmt: skip


_TURBOSTAT = ("PkgWatt", "Pkg_J", "CorWatt", "Cor_J", "GFXWatt", "GFX_J", "RAMWatt", "RAM_J", "SysWatt", "Sys_J")


def _turbostat(head: Sequence[str]) -> Log | None:
    """Sums, in whose columns of places is a `-`, or what `--summary` writes, which has no such columns."""
    for header in head:
        names = cells_of(header, "\t")
        power = [name for name in _TURBOSTAT if name in names]
        if not power or "Time_Of_Day_Seconds" not in names:
            continue
        place = next((names.index(name) for name in ("CPU", "Core", "Package", "Node") if name in names), None)
        is_joules = power[0].endswith("_J")
        return Log(
            "turbostat", "package", {name: names.index(name) for name in power if name.endswith("_J") == is_joules},
            time=names.index("Time_Of_Day_Seconds"), separator="\t", form="joules" if is_joules else "mean",
            usual=[name for name in power[:1] if name.startswith("Pkg")],
            only=None if place is None else (place, "-"), header=header.strip(),
        )  # fmt: skip
    return None


def _perf(head: Sequence[str]) -> Log | None:
    """`perf stat -I … -x,`: the unit stands behind the value and before the event; a socket's columns before both."""
    for line in head:
        if (joules := re.search(r"([,;|\t])Joules\1[^,;|\t]*energy-", line)) is None:
            continue
        cells = cells_of(line, joules[1])
        unit = cells.index("Joules")
        before = cells[1:unit]
        is_split = joules[1] == "," and len(before) > 1 and before[-2].isdigit() and len(before[-1]) == 2  # noqa: PLR2004
        # Beside a socket stands the number of its CPUs.
        value = unit - 1 - is_split
        started = next((line for line in head if line.startswith("# started on ")), None)
        if started is None:
            return None
        return Log(
            "perf stat", "package", {"joules": value}, separator=joules[1], form="joules", usual=["joules"],
            keys=[unit + 1, *([1] if value > 1 else [])], usual_key="energy-pkg", only=(unit, "Joules"),
            fraction=unit - 1 if is_split else None, begin=started.removeprefix("# started on ").strip(),
            error_ns=HALF_SECOND_NS,
        )  # fmt: skip
    return None


# What feeds a whole module, by its name on the boards that measure it.
_MODULE = ("VDD_IN", "POM_5V_IN", "VIN")
_TEGRA_ROW = re.compile(r"(\d{4}-\d\d-\d\dT\S+|\S+ \d\d:\d\d:\d\d|\d{9,}(?:\.\d+)?)?\s*(RAM \d+/\d+MB .*)")
# The first number is of the moment, the second a mean since the tool began. A temperature has a similar name.
_TEGRA_RAIL = re.compile(
    r"(?<!\S)(VDD_\w+|POM_\w+|VIN\w*|GPU|CPU|SOC|CV|VDDRQ|SYS5V)\s+(?=\S*(?:/|mW))"
    r"(-?\d+)(?:mW)?(?:/-?\d+(?:mW)?){0,2}(?!\S)"
)


def _tegrastats(head: Sequence[str]) -> Log | None:
    row = next(filter(None, map(_TEGRA_ROW.match, head)), None)
    if row is None or row[1] is None:
        return None
    rails = [name for name, _ in _TEGRA_RAIL.findall(row[2])]
    if not rails:
        return None
    module = [name for name in _MODULE if name in rails]
    return Log(
        "tegrastats", "module" if module else "rails", {name: index for index, name in enumerate(rails, 1)},
        usual=module[:1], scale=0.001, error_ns=HALF_SECOND_NS, pattern=_TEGRA_ROW, named_values=_TEGRA_RAIL,
    )  # fmt: skip


_READ: tuple[Callable[[Sequence[str]], Log | None], ...] = (
    _own, _ptdaemon, _tegrastats, _turbostat, _perf, _nvidia_smi, _yokotool,
)  # fmt: skip
_SMI = "log it by nvidia-smi --query-gpu=timestamp,index,power.draw --format=csv --loop-ms=100"
# What the first lines of a log have that cannot work, and why it cannot.
_REFUSED = (
    (r"^#\s*Entity\b", f"dcgmi dmon writes no time; {_SMI}"),
    (r"^#\s*(gpu|Time|Date)\b.*\b(pwr|pid)\b", f"nvidia-smi dmon and pmon write whole watts, or no date; {_SMI}"),
    (r"NVSMI LOG|\| NVIDIA-SMI ", f"this is what nvidia-smi prints for people; {_SMI}"),
    (r"\A\s*\d{4}/\d\d/\d\d \d\d:\d\d:\d\d[.\d]*,", f"nvidia-smi's log has no header; leave out noheader: {_SMI}"),
    (r"\A(?!.*timestamp).*\bpower\.draw\b", f"nvidia-smi's log has no timestamp; {_SMI}"),
    (r"^device,.*Power \(W\)", "rocm-smi writes no time; write a file with time,power_w"),
    (
        r"Instantaneous power reading:|^Current Power +: +\d+ [Ww]atts|\|\s*(\d+ )?Watts\s*\|",
        "IPMI reads in steps of some watts, every few seconds and by a clock of its own; use a meter that logs each "
        "second",
    ),
    (
        r'"ENERGY":\s*\{',
        "Tasmota sends whole watts at most every 10 s, too few for any block; read the plug each second into a file "
        "with time,power_w",
    ),
    (
        r"\A(task_name,)?timestamp,.*\benergy_consumed\b",
        "CodeCarbon's emissions.csv has a row a run, and no power over time; give the log of a meter",
    ),
    (r"SPEC PTDaemon Tool|^ptd-server |:::MLLOG", "this log has no readings; give PTDaemon's spl.txt"),
    (
        r"\A(?![\s\S]*Time_Of_Day_Seconds)[\s\S]*^(.*\t)?(PkgWatt|Pkg_J|RAMWatt|SysWatt)\b",
        "turbostat's rows have no time; add --enable Time_Of_Day_Seconds",
    ),
    (r"\A(?![\s\S]*\d\d:\d\d|\d{9})[\s\S]*^\s*RAM \d+/\d+MB ", "tegrastats wrote no time; pipe it through ts '%s'"),
    (
        r"\A(?![\s\S]*(VDD|POM|VIN|GPU|SYS5V)\S* -?\d+(mW)?/)[\s\S]*\bRAM \d+/\d+MB ",
        "tegrastats wrote no rail; run it with sudo",
    ),
    (
        r"\A(?![\s\S]*started on)[\s\S]*[,;|\t]Joules[,;|\t][^,;|\t]*energy-",
        "perf stat does not say when it began; let it write with -o FILE, whose first line has the date",
    ),
)  # fmt: skip
