"""The tables of docs/reliability.md: each fault test hands in its row, with what it saw; the file must say the same."""

import os
from pathlib import Path
from typing import NamedTuple

DOCUMENT = Path(__file__).parents[2] / "docs" / "reliability.md"
WRITE_VARIABLE = "KIT_WRITE_DOCS"
REGENERATE = f"{WRITE_VARIABLE}=1 .venv/bin/python -m pytest tests/faults"
COLUMNS = ("fault", "how it is injected", "what is kept", "exit code", "what is said", "how to go on")

# Section -> its faults, in the order of the document.
SECTIONS = {
    "The worker": (
        *(f"worker killed in `{name}`" for name in ("import", "data", "build", "trace", "compile", "first_step")),
        *(f"worker killed in `{name}`" for name in ("warmup", "steady", "evaluate", "parity")),
        "worker killed before its first phase",
        "out of memory: a cgroup's limit",
        "out of memory: an allocation that fails",
        "worker hangs in `import`",
        "worker hangs in `steady`",
        "worker hangs in `parity`",
        "worker that SIGKILL does not end",
        "loss is not a number",
        "sampler killed in mid-launch",
    ),
    "The run": (
        "SIGINT",
        "SIGTERM",
        "SIGHUP",
        "SIGTERM when a worker has just ended",
        "SIGINT in the middle of an import",
        "SIGINT when all is written",
        "`kit run` killed while it begins its journal",
        "`kit run` killed within a line of the journal",
        "`kit run` killed within the profile",
        "`kit run` killed between sidecar and profile",
        "`kit run` killed between sidecar and profile while it resumes",
        "`kit run` killed before it removes the journal",
        "`kit run` killed at random moments",
        "`kit run` killed while its worker hangs",
        "`kit run` killed while its worker hangs behind a script",
        "two runs into the same file",
        "resumed while it still runs",
        "wall clock set back a day",
    ),
    "The disk": (
        "disk full at a line of the journal",
        "disk full at the profile",
        "temporary folder full as a launch begins",
        "temporary folder full in mid-launch",
        "journal torn in its last line",
        "journal cut off within its header",
        "journal with a flipped bit in a launch",
        "journal with a flipped bit in its header",
        "journal deleted after an interrupt",
        "journal deleted while the run goes on",
    ),
}
FAULTS = tuple(fault for faults in SECTIONS.values() for fault in faults)


class Row(NamedTuple):
    """One fault and its outcome."""

    fault: str
    injected: str
    kept: str
    exit_code: str
    said: str
    go_on: str


def in_markdown(row):
    return "| " + " | ".join(field.replace("|", "\\|") for field in row) + " |"


def document(text, rows):
    """The page `text` with its tables written anew; what stands before the first of them stays."""
    parts = [text.partition("\n## ")[0].rstrip() + "\n"]
    for section, faults in SECTIONS.items():
        lines = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
        lines += [in_markdown(rows[fault]) for fault in faults if fault in rows]
        parts.append(f"## {section}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def rows_in(text):
    """Fault -> Row, of a page."""
    found = {}
    for line in text.splitlines():
        fields = [field.replace("\0", "|") for field in line.replace("\\|", "\0").strip("| ").split(" | ")]
        if len(fields) == len(COLUMNS) and fields[0] in FAULTS:
            found[fields[0]] = Row(*fields)
    return found


def rows_written():
    return rows_in(DOCUMENT.read_text())


def writing():
    return bool(os.environ.get(WRITE_VARIABLE))
