"""What no command may do, whatever a file holds: raise what is not ours, print what controls a terminal or is markup
elsewhere, write outside the folder that the user named, or say a number that no machine has.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import sys
import traceback
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from fuzz_commands import Ran
from fuzz_mutations import MARK
from markdown_it import MarkdownIt
from prometheus_client.parser import text_string_to_metric_families

CODES = (0, 1, 2, 3, 4, 5)
# Profiles this small make no more.
PRINTED_MAX_B = 16 << 20
# A screen; more is no line.
LINE_MAX = 4_010
YEAR_NS = 365 * 86_400 * 1e9
# The most that a number may say, by the end of its name. They are generous: larger than any cluster's by thousands.
ENDINGS = {
    "ns": (0, YEAR_NS), "s": (0, YEAR_NS / 1e9), "b": (0, 2.0**60), "j": (0, 1e12), "w": (0, 1e7), "mhz": (0, 1e6),
    "c": (-100, 1000), "pct": (-1e9, 1e9), "per_s": (0, 1e21), "ratio": (1e-10, 1e10), "share": (0, 1e6),
    "fraction": (0, 1e6),
}  # fmt: skip
SHARES = ("contention_pct", "energy_contention_pct", "utilization_pct", "share_pct", "taken_pct", "stolen_pct")
# A single raw step may be shorter than the clock's resolution, which may be 16 ns; a mean of many may not.
ZERO_STEP = re.compile(r"number: step_ns is 0(\.0)?")
FORMULAS = "=+@|"  # at the beginning of a spreadsheet's cell; of "-" only numbers begin
# They may be negative: a difference, or what is left of one, or a lag that was found too early. A moment on a clock of any beginning may be anything.
SIGNED = re.compile(r"resident_b|_net_|align|drift|delay_product|low_|idle|lag")
# Counters of the machine began when it was started.
MOMENT = re.compile(r"begin_ns|raw_ns|at_ns|pressure_|throttled_ns|violation_ns")
# What Python makes of a number that is none.
SPELLED = re.compile(r"(?<![\w./-])(nan|inf|Infinity|NaN)(?![\w./-])")
# A page is made of these; none of them loads, runs or links to anything beyond the page.
TAGS = {
    "a", "b", "body", "br", "caption", "code", "colgroup", "dd", "defs", "desc", "details", "div", "dl", "dt", "em",
    "figcaption", "figure", "g", "h1", "h2", "h3", "h4", "head", "header", "footer", "html", "li", "line", "main",
    "meta", "nav", "ol", "p", "path", "polyline", "circle", "rect", "section", "span", "strong", "style", "summary",
    "svg", "table", "tbody", "td", "text", "th", "thead", "title", "tr", "ul", "use",
}  # fmt: skip
ATTRIBUTES = {
    "aria-hidden", "aria-label", "aria-labelledby", "charset", "class", "colspan", "content", "d", "fill", "height",
    "href", "id", "lang", "name", "points", "role", "rowspan", "scope", "stroke", "tabindex", "transform", "viewbox",
    "width", "x", "x1", "x2", "y", "y1", "y2", "cx", "cy", "r", "title", "open",
}  # fmt: skip
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
TOUCHING = {
    "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.chown", "os.truncate",
    "shutil.rmtree", "shutil.move", "shutil.copyfile",
}  # fmt: skip
STARTING = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect", "os.fork"}


class Watch:
    """What Python is asked to open, change, start or connect to, as its audit hooks tell, while it is on."""

    def __init__(self) -> None:
        self.events: list[tuple[str, list[str], tuple[Any, ...]]] = []
        self.is_on = False
        sys.addaudithook(self._hear)

    def __enter__(self) -> None:
        self.is_on = True

    def __exit__(self, *_: object) -> None:
        self.is_on = False

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.is_on and (event == "open" or event in TOUCHING or event in STARTING):
            paths = [os.path.abspath(os.fsdecode(part)) for part in arguments[:2] if isinstance(part, (str, bytes))]  # noqa: PTH100
            self.events.append((event, paths, arguments))

    def faults(self, root: Path, kind: str) -> Iterator[str]:
        """Yield what of the events since the last call is a fault, in a root whose other files are looked at."""
        events, self.events = self.events, []
        for event, paths, arguments in events:
            if event in STARTING:
                if kind not in ("suite", "journal") or MARK in repr(arguments):
                    yield f"started: {event} {repr(arguments)[:200]}"
            elif event == "open" and not (isinstance(arguments[2], int) and arguments[2] & WRITING):
                # A suite names programs, whose files are hashed before they run; a profile a sidecar beside it.
                if kind != "suite" and any(
                    (MARK in path and Path(path).parent != root / "named") or "canary" in path for path in paths[:1]
                ):
                    yield f"opened: {paths[0][:200]}"
            else:
                for path in map(Path, paths[: 1 if event == "open" else 2]):
                    if not (path.is_relative_to(root) or path == Path(os.devnull) or _is_temporary(path)):
                        yield f"outside: {event} {path}"


def _is_temporary(path: Path) -> bool:
    return path.name.startswith(("tmp", "matplotlib")) or "fontlist" in path.name


def entries(root: Path) -> dict[str, tuple[int, int]]:
    """Return every file and folder of a root but those in `named/out`, with its size and time."""
    seen = {}
    for folder, names, files in os.walk(root):
        if folder == str(root / "named"):
            names.remove("out") if "out" in names else None
        for name in (*names, *files):
            about = os.lstat(f"{folder}/{name}")
            seen[f"{folder}/{name}"] = (about.st_size, about.st_mtime_ns) if name in files else (0, 0)
    return seen


def faults_of(ran: Ran, out: Path) -> Iterator[str]:  # noqa: PLR0912 - a branch a property
    """Yield what was wrong with a command, a line each that begins with its kind."""
    if ran.error is not None:
        last = traceback.extract_tb(ran.error.__traceback__)
        of_kit = [frame for frame in last if "/kit/" in frame.filename] or last
        place = f"{'/'.join(Path(of_kit[-1].filename).parts[-2:])}:{of_kit[-1].lineno}" if of_kit else "nowhere"
        yield f"exception: {type(ran.error).__name__} at {place}: {str(ran.error)[:200]}"
        return
    yield from (f"warning: {line}" for line in ran.warned)
    yield from (f"left: {name} is not as it was" for name in ran.left)
    if ran.words.startswith("python"):
        if isinstance(ran.code, str):
            yield from _of_line(f"kit: {ran.code}")
        else:
            yield from _of_python(ran.result)
        return
    if (ran.code or 0) not in CODES:
        yield f"exit code: {ran.code}"
    sizes = {"standard output": len(ran.printed)} | {path.name: path.stat().st_size for path in out.rglob("*.*")}
    if larger := [f"{name} has {size >> 20} MiB" for name, size in sizes.items() if size > PRINTED_MAX_B]:
        yield f"size: {larger[0]}"
        return
    printed, complained = ran.printed.decode("utf-8", "replace"), ran.complained.decode("utf-8", "replace")
    if ran.printed and "\ufffd" in printed and b"\xef\xbf\xbd" not in ran.printed:
        yield "encoding: standard output is not UTF-8"
    yield from _controls(printed, "standard output")
    lines = complained.splitlines()
    # A table of several profiles says in it which could not be read.
    if ran.is_refused and not ran.printed and not (lines and lines[-1].startswith("kit: ")):
        yield f"no line: {complained[:200]!r}"
    for line in lines:
        yield from _of_line(line)
        # A refusal quotes what it refuses.
        yield from () if ran.is_refused else _text(line)
    words = ran.words.split()
    name = "json" if "--json" in words else "text"
    if "--format" in words:
        name = words[words.index("--format") + 1]
    if words[0] == "export":
        name = "" if "-o" in words else "json"
    if printed:
        faults = OF_FORMATS.get(name, lambda _: ())(printed)
        yield from (fault for fault in faults if not ("--steps" in words and ZERO_STEP.fullmatch(fault)))
    # A journal is what was read, and not written.
    for file in sorted(out.rglob("*")) if words[0] != "run" else ():
        if file.is_file() and (ending := file.suffix) in OF_FILES:
            yield from OF_FILES[ending](file.read_bytes())


def _of_line(line: str) -> Iterator[str]:
    yield from _controls(line, "an error")
    if len(line) > LINE_MAX:
        yield f"no line: {len(line):,} characters: {line[:80]}"


def _controls(text: str, where: str) -> Iterator[str]:
    if not text.replace("\n", "").isprintable():
        wrong = sorted({character for character in text if not character.isprintable() and character != "\n"})
        at = text.index(wrong[0])
        yield f"control: {''.join(wrong)!a} in {where}: {text[max(0, at - 40) : at + 20]!a}"


def _text(text: str) -> Iterator[str]:
    """Yield a number that is none; the others are those of the other formats."""
    if spelled := SPELLED.search(text):
        yield f"number: {spelled[0]} in {text[max(0, spelled.start() - 40) : spelled.end() + 20]!r}"


@cache
def _bounds(name: str) -> tuple[float, float] | None:
    """Return the least and the most that a value of this name can be; null: any finite number."""
    plain = name.removesuffix(" per step").removeprefix("phase ")
    last = plain.rpartition(".")[2].rpartition(" ")[2] or plain
    if name.endswith((" mean %", " max %")):
        return 0.0, 101.0 if name.startswith("nvml") else 1e6
    if last in SHARES:
        return 0.0, 101.0
    ending = max((ending for ending in ENDINGS if last.endswith(f"_{ending}")), key=len, default=None)
    if ending is None or MOMENT.search(plain):
        return None
    low, high = ENDINGS[ending]
    # No step takes less than a nanosecond.
    low = 1.0 if plain in ("step_ns", "raw_step_ns", "latency_ns") else low
    return -high if SIGNED.search(plain) else low, high


def _walk(value: Any, name: str = "") -> Iterator[str]:
    """Yield the numbers below a value that no machine has."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _walk(part, str(key))
    elif isinstance(value, (list, tuple)):
        numbers = [part for part in value if type(part) in (int, float)]
        # NaN is in no order, and may be at neither end.
        for number in {min(numbers), max(numbers), *filter(math.isnan, numbers)} if numbers else ():
            yield from _walk(number, name)
        for part in value:
            if isinstance(part, (dict, list, tuple)):
                yield from _walk(part, name)
    elif type(value) in (int, float):
        low, high = _bounds(name) or (-math.inf, math.inf)
        if not (low <= value <= high and abs(value) < math.inf):
            yield f"number: {name} is {value!r}"[:200]


def kind_of(fault: str) -> str:
    """Return what alike faults have in common: all but numbers and what is quoted."""
    return re.sub(r"\d[\d.,e+-]*", "0", re.sub(r"'.*'|\".*\"", "", fault))[:120]


def _first(faults: Iterable[str]) -> Iterator[str]:
    """Yield the first of alike faults: a column of a thousand wrong numbers is one."""
    yield from {kind_of(fault): fault for fault in faults}.values()


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


def _json(text: str) -> Iterator[str]:
    try:
        document = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        yield f"format: {error}"[:200]
        return
    yield from _first(_walk(document))


def _jsonl(text: str) -> Iterator[str]:
    yield from _first(fault for line in text.splitlines() for fault in _json(line))


def _csv(text: str) -> Iterator[str]:
    rows = list(csv.reader(io.StringIO(text), strict=True))
    if len({*map(len, rows)}) > 1:
        yield "format: rows of CSV differ in length"
        return
    for name, *values in zip(*rows, strict=True):
        yield from _walk({name: list(map(_number, values))})
        yield from _first(f"format: {value[:40]!r} is a formula" for value in values if value[:1] in FORMULAS and value)


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _junit(text: str) -> Iterator[str]:
    try:
        whole = ET.fromstring(text)
    except ET.ParseError as error:
        yield f"format: {error}: {text[:80]!r}"
        return
    for element in whole.iter():
        if MARK in element.tag:
            yield f"markup: {element.tag}"
        for words in (*element.attrib.values(), element.text or ""):
            yield from _controls(words.strip("\n"), "JUnit's XML")


def _prometheus(text: str) -> Iterator[str]:
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if not math.isfinite(sample.value):
                    yield f"number: {sample.name} is {sample.value}"
    except (ValueError, KeyError, IndexError) as error:
        yield f"format: Prometheus: {error}"[:200]


MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
MARKUP = ("html_inline", "html_block", "link_open", "image", "code_inline", "fence", "code_block", "em_open", "s_open")


def _markdown(text: str) -> Iterator[str]:
    yield from _text(text)
    for block in MARKDOWN.parse(text):
        for token in (block, *(block.children or ())):
            if token.type in (*MARKUP, "strong_open"):
                yield f"markup: {token.type} in Markdown: {(token.content or block.content)[:120]!r}"
    # GitHub makes links of addresses and mentions without any brackets.
    for line in text.splitlines():
        if bare := re.search(rf"(?<!\\)(://{MARK}|(?<![\w\\])@{MARK}|www\.{MARK})", line):
            yield f"markup: {bare[0]} in Markdown: {line[:120]!r}"


class _Page(HTMLParser):
    """Collects what a page must not have, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            self.faults.append(f"markup: <{tag[:40]}> in the page")
        for name, value in attrs:
            if name not in ATTRIBUTES or (name == "href" and not (value or "").startswith("#")):
                self.faults.append(f"markup: {name[:40]}={(value or '')[:40]!r} of <{tag[:20]}> in the page")
            self.words.append(value or "")

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def _page(data: bytes) -> Iterator[str]:
    page = _Page()
    page.feed(data.decode())
    page.close()
    yield from _first(page.faults)
    for words in page.words:
        yield from _first(_controls(words, "the page"))
    yield from _first(fault for words in page.words for fault in _text(words))


def _svg(data: bytes) -> Iterator[str]:
    try:
        whole = ET.fromstring(data)
    except ET.ParseError as error:
        yield f"format: SVG: {error}"
        return
    for element in whole.iter():
        name = element.tag.rpartition("}")[2]
        if MARK in name or name in ("script", "image", "foreignObject", "a"):
            yield f"markup: <{name[:40]}> in a plot"
        for attribute, value in element.attrib.items():
            if attribute.startswith("on") or (attribute.endswith("href") and not value.startswith("#")):
                yield f"markup: {attribute}={value[:40]!r} in a plot"
        if name in ("text", "tspan", "title"):
            yield from _controls((element.text or "").strip("\n"), "a plot")


def _parquet(data: bytes) -> Iterator[str]:
    table = pq.read_table(io.BytesIO(data))
    for name in table.column_names:
        faults = _walk({name: table[name].to_pylist()})
        yield from (fault for fault in faults if not ("kind" in table.column_names and ZERO_STEP.fullmatch(fault)))


def _of_python(result: Any) -> Iterator[str]:
    """Yield the faults of columns, of words and of HTML that the Python interface returned."""
    for part in result if isinstance(result, tuple) else (result,):
        if isinstance(part, dict):
            for name, values in part.items():
                faults = _walk({name: values})
                yield from (fault for fault in faults if not ("kind" in part and ZERO_STEP.fullmatch(fault)))
        elif isinstance(part, str) and part.startswith("<style>"):
            yield from _page(part.encode())
        elif isinstance(part, str):
            yield from (*_controls(part, "what is printed"), *_first(_text(part)))


def _text_of(data: bytes) -> Iterator[str]:
    text = data.decode()
    yield from (*_controls(text, "a file"), *_json(text))


OF_FORMATS = {
    "text": lambda text: _first(_text(text)), "markdown": lambda text: _first(_markdown(text)), "csv": _csv,
    "json": _json, "jsonl": _jsonl, "junit": _junit, "prometheus": _prometheus,
}  # fmt: skip
OF_FILES = {".html": _page, ".svg": _svg, ".parquet": _parquet, ".json": _text_of}
