"""The table of refusals: what its cases name beside the golden profiles, how a case runs, and its lines of today."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

import profile_builder as b
from golden_outputs import FOLDER, run_main, split_environment
from golden_profiles import make_profiles
from msgspec.structs import replace
from planted_files import plant

REFUSALS = FOLDER / "refusals.txt"
# Neither an engine nor Slurm nor a choice of a data folder, whatever this machine has.
BARE = {"DOCKER_HOST": "unix:///nowhere.sock"}
BARE |= dict.fromkeys(("KIT_ENGINE", "KIT_DATA", "SLURM_JOB_NODELIST", "SLURMD_NODENAME"), "")
MODEL = """
raise ImportError("a program is looked at, and not run")
def program(batch, device):
    pass
def both(batch, device, task):
    pass
"""
ANSWERS = f'#!/bin/sh\nexec {sys.executable} "$@" | sed '
FILES = {
    "mine.toml": 'name = "mine"\ntitle = "Mine"\n'
    '[cells]\nworkloads = ["mlp"]\nbackends = ["torch"]\ntasks = ["train"]\n',
    "mlp.toml": 'name = "p"\ntitle = "P"\n[cells]\nbatches = [8]\n[programs.mlp]\npath = "model.py"\n',
    **dict.fromkeys(("model.py", "old/model.py", "pack/__init__.py", "pack/deep.py"), MODEL),
    "broken.py": "x = 1\ndef program(:\n",
    "uses.py": "print(1)\n",
    "watts.csv": "time,power_w\n",
    "no.json": "{}",
    **dict.fromkeys(("there.json", "there.html"), ""),
    "pythons/other-kit": f"""{ANSWERS}'s/"kit":"[^"]*"/"kit":"0.0.1"/'\n""",
    "pythons/bare": f"""{ANSWERS}'s/"version":"[^"]*"/"version":null/'\n""",
    "pythons/no-kit": "#!/bin/sh\necho 'No module named kit' >&2\nexit 1\n",
    "pythons/older": "#!/bin/sh\necho 'Unknown option: -P\nusage: python [option]' >&2\nexit 2\n",
    "pythons/silent": "#!/bin/sh\necho hello\n",
}
EDITED = re.compile(r"([\w./-]+)\{(.*?)\}(?=\s|$)")


def make_inputs(parent: Path) -> Path:
    """Write the golden profiles and these files; return their folder."""
    folder = plant(make_profiles(parent), FILES)
    for file in (folder / "pythons").iterdir():
        file.chmod(0o755)
    for name in ("bare/folder", "folder"):
        (folder / name).mkdir(parents=True)
    (folder / "binary.py").write_bytes(b"\xff\xfe\0\0")
    os.mkfifo(folder / "pipe.json")
    asked = [b.member(name, 2.0, batch=batch) for name in ("torch", "jax") for batch in (32, 64)]
    b.write(folder / "asked.json", b.profile(b.group("g", *asked), rounds=3, compare=["batch", "backend"]))
    lost = b.profile(b.group("g", b.member("torch")), rounds=1)
    lost.cells[0].launches = []
    b.write(folder / "lost.json", lost)
    b.write(folder / "unknown.json", replace(lost, kit=replace(lost.kit, revision=None)))
    return folder


def cases() -> list[tuple[str, int, str]]:
    """Return the words, the exit code and the line of each case."""
    rows = [row for row in REFUSALS.read_text(encoding="utf-8").splitlines() if row and not row.startswith("#")]
    parts = [row.rsplit(" | ", 2) for row in rows]
    return [(words, int(code), line) for words, code, line in parts]


def refused(words: str, folder: Path) -> tuple[object, str]:
    """Return the exit code and the last line of a command, which prints nothing else and leaves no file."""
    files = {*folder.rglob("*")}
    before = _edit(words, folder)
    try:
        given, named = split_environment(shlex.split(EDITED.sub(r"\1", words).replace("\\n", "\n")))
        code, printed, complained = run_main(named, BARE | given, folder)
    finally:
        for path, content in before.items():
            path.write_bytes(content)
    *notices, line = complained.splitlines()
    assert all(text.startswith("kit: ") for text in (*notices, line)), complained
    assert (printed, {*folder.rglob("*")} ^ files) == ("", set())
    return code, line.removeprefix("kit: ").replace(str(folder), "HERE")


def _edit(words: str, folder: Path) -> dict[Path, bytes]:
    """Change files as a case's words say; return what they held before."""
    before = {}
    for name, text in EDITED.findall(words):
        path, (old, arrow, new) = folder / name, text.replace("\\n", "\n").encode().partition(b" -> ")
        before[path] = path.read_bytes()
        path.write_bytes(before[path].replace(old, new) if arrow else before[path] + old)
    return before


def says(line: str, pattern: str) -> bool:
    """Return whether a line is the table's, in which `…` stands for any text."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("…"))), line) is not None


def rewritten(folder: Path) -> str:
    """Return the table with what its commands say now."""
    text = REFUSALS.read_text(encoding="utf-8")
    for words, code, line in cases():
        code_now, line_now = refused(words, folder)
        if code_now != code or not says(line_now, line):
            text = text.replace(f"\n{words} | {code} | {line}\n", f"\n{words} | {code_now} | {line_now}\n")
    return text
