"""What a page is made of, without scripts: a report as HTML tables, which a notebook shows, too; charts as inline SVG.

Colors of charts are classes of the page's style; a look has a marker, too.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from typing import NamedTuple, get_args

from kit.compare.metrics import METRICS
from kit.compare.rows import GroupRows, Row
from kit.compare.runs import Run, whole_key
from kit.compare.table import LaunchRow
from kit.profile.schema import PhaseName, Profile
from kit.report.report_table import Column, Footnotes, Loud, Report, Table, TableCell
from kit.report.values_in_words import BY_UNIT, counted, duration, one_line

# Colors have a contrast of 4.5 and more on white and on black. A verdict is also said in words.
STYLE = """
.kit{font:14px/1.45 system-ui,sans-serif;color:var(--kit-text,inherit)}
.kit p{margin:.4em 0;max-width:80em}
.kit .head{font-weight:600}.kit .notes{font-size:.9em;padding-left:1.2em}.kit .notes li{margin:.2em 0}
.kit .scroll{overflow-x:auto;margin:.8em 0}
.kit table{border-collapse:collapse;font-variant-numeric:tabular-nums;white-space:nowrap}
.kit caption{text-align:left;font-weight:600;padding:.2em 0}
.kit th,.kit td{padding:.2em .9em .2em 0;text-align:left;vertical-align:top;background:none}
.kit th.n,.kit td.n{text-align:right}
.kit td.f{white-space:normal;overflow-wrap:anywhere;min-width:14em;max-width:60em}
.kit thead tr:last-child th{border-bottom:1px solid currentColor;font-weight:500}
.kit tbody th{font-weight:400}
.kit .green{color:#0a7a3c}.kit .red{color:#c62828}.kit .yellow{color:#8a5d00}
@media screen and (prefers-color-scheme:dark){
.kit .green{color:#4cc38a}.kit .red{color:#ff8a80}.kit .yellow{color:#e2b340}}
"""
# In units of the drawing. On a telephone one is about a pixel, so that text stays readable.
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 340, 56, 8, 8, 34
BLOCKS_HIGH, ROW_HIGH, CHAR_WIDE = 150, 34, 5.6
# The frameworks' looks are the first ones, in this order, as in the colors of `kit plot`. Cells in one chart have one
# each; of more, there are several charts.
FRAMEWORKS = ("tensorflow", "torch", "jax")
LOOKS = 7
PHASES: tuple[PhaseName, ...] = get_args(PhaseName)
# A disk, a square, a triangle, a diamond, another triangle, a cross, a bar. Points are references to them.
MARKERS = """M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0|M-2.6-2.6h5.2v5.2h-5.2z|M0-3.4 3.3 2.6h-6.6z|M0-3.8 3.4 0 0 3.8-3.4 0z
|M0 3.4 3.3-2.6h-6.6z|M-1-3.3h2v2.3h2.3v2h-2.3v2.3h-2v-2.3h-2.3v-2h2.3z|M-3.4-1.7h6.8v3.4h-6.8z"""
MARKS = "".join(f'<path id="m{look}" d="{path.strip()}"/>' for look, path in enumerate(MARKERS.split("|")))
DEFINITIONS = f'<svg width="0" height="0" class="defs" aria-hidden="true"><defs>{MARKS}</defs></svg>'
# What is drawn of a cell where it was measured: metric, what it is called, its unit behind the number.
BARS = (
    ("energy_per_sample_j", "Energy per 1,000 samples", "J"),
    ("energy_power_w", "Mean power", "W"),
    ("utilization_pct", "Utilization of the device", "%"),
    ("cpus", "CPUs kept busy", ""),
)
# What is drawn of long blocks over time: the unit of the readings, and what they are called.
OVER_TIME = (("W", "Power"), ("MHz", "Clock"))
PANEL_HIGH = 80
SCALED = 100  # a log axis of a wider range than 8 has ticks at 1, 2 and 5 up to this range, else at powers of ten


def fragment(report: Report) -> str:
    """Return headline, tables, sentences and notes as one element; it needs STYLE."""
    return f'<div class="kit">{"".join(_parts(report))}</div>'


def _parts(report: Report) -> Iterator[str]:
    footnotes = Footnotes()
    if report.headline:
        yield f'<p class="head">{"<br>".join(map(words_of, report.headline))}</p>'
    for table in report.tables:
        sentences = (f"<p>{words_of(sentence)}</p>" for sentence in table.sentences)
        yield f'<div class="part">{table_of(table, footnotes)}{"".join(sentences)}</div>'
    if notes := [*footnotes.lines(), *report.below()]:
        items = (f"<b>{words_of(line)}</b>" if isinstance(line, Loud) else words_of(line) for line in notes)
        yield f'<ul class="notes">{"".join(f"<li>{item}</li>" for item in items)}</ul>'


def words_of(text: str) -> str:
    """Return a text as HTML shows it: one line, no markup of its own."""
    return escape(one_line(text))


def table_of(table: Table, footnotes: Footnotes) -> str:
    """Return a table that scrolls where it is too wide, also by keyboard; its first column heads the rows."""
    body = "".join(f"<tr>{''.join(_cells(table.columns, row, footnotes))}</tr>" for row in table.rows)
    name = words_of(table.title)
    caption, head = f"<caption>{name}</caption>" if name else "", "".join(_head(table)) if table.has_header else ""
    # Not a region: a page with a landmark for each table has nothing but landmarks.
    region = f'class="scroll" role="group" tabindex="0" aria-label="{name or "Table"}"'
    return f"<div {region}><table>{caption}{head}<tbody>{body}</tbody></table></div>"


def _head(table: Table) -> Iterator[str]:
    yield "<thead>"
    if any(column.over for column in table.columns):
        yield "<tr>"
        for over, columns in groupby(table.columns, lambda column: column.over):
            span = len([*columns])
            name = words_of(over)
            yield f'<th colspan="{span}" scope="colgroup">{name}</th>' if over else f'<td colspan="{span}"></td>'
        yield "</tr>"
    titles = (
        f'<th scope="col"{_side(column)}>{words_of(column.title)}</th>' if column.title else "<td></td>"
        for column in table.columns
    )
    yield f"<tr>{''.join(titles)}</tr></thead>"


def _cells(columns: Sequence[Column], row: Sequence[TableCell], footnotes: Footnotes) -> Iterator[str]:
    for index, (column, cell) in enumerate(zip(columns, row, strict=True)):
        words = words_of(footnotes.words(cell))
        words = f'<span class="{cell.style.split()[-1]}">{words}</span>' if cell.style and words else words
        is_name = index == 0 and words
        yield f'<th scope="row">{words}</th>' if is_name else f"<td{_side(column)}>{words}</td>"


def _side(column: Column) -> str:
    return ' class="n"' if column.right else ' class="f"' if column.folds else ""


class ChartPoint(NamedTuple):
    """One block of a cell, as a chart shows it."""

    round: int
    begin_ns: int
    step_ns: float
    counts: bool  # its cycle is in the numbers of `kit compare`


class ChartMember(NamedTuple):
    """A cell of a group as charts show it."""

    row: Row
    look: int
    launches: Sequence[LaunchRow]  # all, with all cycles
    blocks: Sequence[ChartPoint]


def members_of(run: Run, group: GroupRows) -> list[ChartMember]:
    """Return the cells of a group of one profile."""
    members, looks = list[ChartMember](), list[int]()
    for row in group.rows:
        sample = run.sample_of(group.key, row.cell_key)
        used = looks[len(looks) // LOOKS * LOOKS :]  # by cells in the same chart
        usual = [FRAMEWORKS.index(row.cell.backend)] if row.cell.backend in FRAMEWORKS else []
        looks.append(next(look for look in (*usual, *range(len(FRAMEWORKS), LOOKS), *range(LOOKS)) if look not in used))
        launches = [launch for launch in sample.launches if whole_key(launch.group) == sample.group]
        points = [
            ChartPoint(launch.round, block.begin_ns, block.step_ns, launch.gives_figures and block.counts)
            for launch in launches
            for block in launch.rows()
        ]
        members.append(ChartMember(row, looks[-1], launches, points))
    return members


def figure(title: str, members: Sequence[ChartMember], drawing: str) -> str:
    """Return a chart below its title, with the members' looks where they are given; nothing where nothing is drawn."""
    keys = "".join(_key(f"c{member.look}", f'<use href="#m{member.look}"/>', member.row.name) for member in members)
    return f"<figure><figcaption><b>{words_of(title)}</b> {keys}</figcaption>{drawing}</figure>" if drawing else ""


def blocks_chart(title: str, members: Sequence[ChartMember]) -> str:
    """Return the step time of each block, a band for each round and time within it; a line is the median of a round."""
    every = [block for member in members for block in member.blocks]
    if not every:
        return ""
    rounds = sorted({block.round for block in every})
    times = {number: [block.begin_ns for block in every if block.round == number] for number in rounds}
    low, high = (end(block.step_ns for block in every) for end in (min, max))
    room = max((high / low) ** 0.05, 1.01)
    bottom, top = math.log(low / room), math.log(high * room)
    band = (WIDTH - LEFT - RIGHT) / len(rounds)

    def x(block: ChartPoint) -> float:
        first_ns, last_ns = min(times[block.round]), max(times[block.round])
        part = (block.begin_ns - first_ns) / (last_ns - first_ns) if last_ns > first_ns else 0.5
        return LEFT + band * (rounds.index(block.round) + 0.1 + 0.8 * part)

    def y(step_ns: float) -> float:
        return TOP + BLOCKS_HIGH * (top - math.log(step_ns)) / (top - bottom)

    end_y, body = TOP + BLOCKS_HIGH, list[str]()
    for index, number in enumerate(rounds):
        at = LEFT + band * index
        body += [f'<rect class="band" x="{at:.1f}" y="{TOP}" width="{band:.1f}" height="{BLOCKS_HIGH}"/>'] * (index % 2)
        if index % -(-len(rounds) // 10) == 0:
            body.append(_text(at + band / 2, end_y + 12, str(number + 1), "m"))
    for tick in _log_ticks(low / room, high * room):
        body.append(f'<path class="grid" d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}"/>')
        body.append(_text(LEFT - 5, y(tick) + 3.5, duration(tick), "e"))
    body.append(_text((LEFT + WIDTH - RIGHT) / 2, end_y + 27, "round, and time within it", "m"))
    ranges = []
    for member in members:
        for number in rounds:
            those = [block for block in member.blocks if block.round == number]
            if chosen := [block.step_ns for block in those if block.counts]:
                first, last = x(those[0]) - 3, x(those[-1]) + 3
                level = f"M{first:.1f} {y(statistics.median(chosen)):.1f}H{last:.1f}"
                body.append(f'<path class="level c{member.look}" d="{level}"/>')
        for block in member.blocks:
            look = f'class="c{member.look}{"" if block.counts else " hollow"}" href="#m{member.look}"'
            body.append(f'<use {look} x="{x(block):.1f}" y="{y(block.step_ns):.1f}"/>')
        if steps_ns := [block.step_ns for block in member.blocks]:
            ranges.append(f"{member.row.name}: {duration(min(steps_ns))} to {duration(max(steps_ns))}")
    among = f"{counted(len(every), 'block')} in {counted(len(rounds), 'round')}"
    desc = f"{among}, {sum(not block.counts for block in every)} of them do not count. {'; '.join(ranges)}."
    return _svg(f"{title}: step time of each block", desc, end_y + BOTTOM, body)


def timeline(title: str, members: Sequence[ChartMember]) -> str:
    """Return the first round that most members have: a row a launch, its phases with their names, its blocks."""
    rounds = [launch.round for member in members for launch in member.launches if launch.record.phases]
    if not rounds:
        return ""
    number = statistics.mode(rounds)
    rows = [(member, launch) for member in members for launch in member.launches if launch.round == number]
    parts = [
        ([(phase.begin_ns, phase.duration_ns) for phase in launch.record.phases],
         [(begin_ns, end_ns - begin_ns) for begin_ns, end_ns in launch.blocks.windows()])
        for _, launch in rows
    ]  # fmt: skip
    spans = [span for phases, blocks in parts for span in (*phases, *blocks)]
    begin_ns, end_ns = min(begin for begin, _ in spans), max(begin + length for begin, length in spans)
    scale = (WIDTH - 2 * RIGHT) / max(1, end_ns - begin_ns)
    end_y, body, launches = TOP + ROW_HIGH * len(rows), list[str](), list[str]()
    for tick_s in _steps(0, (end_ns - begin_ns) / 1e9):
        at = RIGHT + tick_s * 1e9 * scale
        body.append(f'<path class="grid" d="M{at:.1f} {TOP}V{end_y}"/>' + _text(at, end_y + 14, f"{tick_s:g} s", "m"))
    for index, ((member, launch), (_, blocks)) in enumerate(zip(rows, parts, strict=True)):
        y, names = TOP + ROW_HIGH * index, list[str]()
        body.append(_text(RIGHT, y + 10, member.row.name))
        for phase in launch.record.phases:
            at, wide = RIGHT + (phase.begin_ns - begin_ns) * scale, phase.duration_ns * scale
            name, fill = phase.name.replace("_", " "), PHASES.index(phase.name)
            names.append(f"{name} {duration(phase.duration_ns)}")
            body.append(f'<rect class="p{fill}" x="{at:.1f}" y="{y + 14}" width="{wide:.2f}" height="16">')
            body.append(f"<title>{names[-1]}</title></rect>")
            body += [_text(at + wide / 2, y + 25.5, name, "m")] if wide > CHAR_WIDE * len(name) + 3 else []
        lines = (
            f"M{RIGHT + (at_ns - begin_ns) * scale:.1f} {y + 14}v16h{max(0.6, span_ns * scale):.1f}v-16z"
            for at_ns, span_ns in blocks
        )
        body.append(f'<path class="blocks c{member.look}" d="{"".join(lines)}"/>')
        launches.append(f"{member.row.name}: {', '.join(names)}, {counted(len(blocks), 'block')}")
    return _svg(f"{title}: phases of round {number + 1}", f"{'; '.join(launches)}.", end_y + 20, body)


def bars(title: str, members: Sequence[ChartMember]) -> str:
    """Return energy and utilization of each cell as bars with their numbers, as far as they were measured."""
    body, listed, y = list[str](), list[str](), TOP
    for name, words, unit in BARS:
        values = [(member, value) for member in members if (value := member.row.value(name))]
        body += [_text(RIGHT, y + 15, words, "head")] if values else []
        y += 22 if values else 0
        for member, value in values:
            shown = f"{BY_UNIT[METRICS[name].unit](value)} {unit}".strip()
            wide = (WIDTH - 3 * RIGHT - CHAR_WIDE * len(shown)) * value / max(value for _, value in values)
            body += [_text(RIGHT, y + 10, member.row.name), _text(RIGHT + wide + 5, y + 22, shown)]
            body.append(f'<rect class="c{member.look}" x="{RIGHT}" y="{y + 14}" width="{wide:.1f}" height="8"/>')
            listed.append(f"{words} of {member.row.name}: {shown}")
            y += 28
    return _svg(f"{title}: energy and utilization", f"{'; '.join(listed)}.", y + 4, body) if body else ""


def long_blocks_chart(title: str, members: Sequence[ChartMember]) -> str:
    """Return power and clock of boards against the time in their long blocks: a line a launch and a board."""
    launches = [(member, launch.record) for member in members for launch in member.launches]
    every = [(member, known) for member, record in launches for known in record.long_block_readings if known.values]
    body, listed, y = list[str](), list[str](), TOP
    end_ns = max((known.at_ns[-1] for _, known in every), default=0) or 1
    scale = (WIDTH - LEFT - RIGHT) / end_ns
    for unit, words in OVER_TIME:
        lines = [(member, known) for member, known in every if known.unit == unit]
        if not lines:
            continue
        values = [value for _, known in lines for value in known.values]
        # A quantity that keeps its level is a line in the middle and no noise from edge to edge.
        room = max(0.1 * (max(values) - min(values)), 0.02 * max(values), 0.5)
        low, high, top = min(values) - room, max(values) + room, y + 22

        def at(value: float, top: float = top, high: float = high, span: float = high - low) -> float:
            return top + PANEL_HIGH * (high - value) / span

        body.append(_text(RIGHT, y + 15, f"{words}, {unit}", "head"))
        for tick in _steps(low, high):
            body.append(f'<path class="grid" d="M{LEFT} {at(tick):.1f}H{WIDTH - RIGHT}"/>')
            body.append(_text(LEFT - 5, at(tick) + 3.5, f"{tick:,g}", "e"))
        for member, known in lines:
            points = zip(known.at_ns, known.values, strict=True)
            drawn = [(f"{LEFT + at_ns * scale:.1f}", f"{at(value):.1f}") for at_ns, value in points]
            body.append(f'<path class="level c{member.look}" d="M{"L".join(map(" ".join, drawn))}"/>')
            # A mark at either end shows whose line it is without its color.
            looks = f'class="c{member.look}" href="#m{member.look}"'
            body += [f'<use {looks} x="{x}" y="{level}"/>' for x, level in (drawn[0], drawn[-1])]
        ends: dict[str, tuple[float, float]] = {}
        for member, known in lines:
            ends.setdefault(member.row.name, (known.values[0], known.values[-1]))
        first_last = (f"{name} from {first:,.0f} to {last:,.0f}" for name, (first, last) in ends.items())
        listed.append(f"{words} of the first launch in {unit}: {', '.join(first_last)}")
        y = top + PANEL_HIGH
    for tick_s in _steps(0, end_ns / 1e9):
        body.append(_text(LEFT + tick_s * 1e9 * scale, y + 14, f"{tick_s:g} s", "m"))
    return _svg(f"{title}: power and clock in the long block", f"{'; '.join(listed)}.", y + 20, body) if listed else ""


def phase_keys(profile: Profile) -> str:
    """Return the phases that any launch has, each with its fill, in their order."""
    launches = [launch for result in profile.cells for launch in result.launches]
    used = {PHASES.index(phase.name) for launch in launches for phase in launch.phases}
    square = '<path d="M-5-5h10v10h-10z"/>'
    return "".join(_key(f"p{index}", square, PHASES[index].replace("_", " ")) for index in sorted(used))


def _key(look: str, mark: str, name: str) -> str:
    mark = f'<svg class="key {look}" viewBox="-5 -5 10 10" aria-hidden="true">{mark}</svg>'
    return f'<span class="named">{mark}{words_of(name)}</span> '


def _svg(title: str, desc: str, height: float, body: Iterable[str]) -> str:
    head = f'<svg role="img" viewBox="0 0 {WIDTH} {height:g}"><title>{words_of(title)}</title>'
    return f"{head}<desc>{words_of(desc)}</desc>{''.join(body)}</svg>"


def _text(x: float, y: float, words: str, anchor: str = "b") -> str:
    return f'<text class="{anchor}" x="{x:.1f}" y="{y:.1f}">{words_of(words)}</text>'


def _steps(low: float, high: float) -> Iterator[float]:
    """Yield round numbers at equal distances, about four."""
    raw = max((high - low) / 4, 1e-12)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * (1 - 1e-9))
    return (index * step for index in range(math.ceil(low / step), math.floor(high / step) + 1))


def _log_ticks(low: float, high: float) -> list[float]:
    """Return round numbers on a logarithmic axis."""
    if high < 8 * low:
        return list(_steps(low, high))
    factors = (1, 2, 5) if high < SCALED * low else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [factor * 10.0**power for power in powers for factor in factors if low <= factor * 10.0**power <= high]
