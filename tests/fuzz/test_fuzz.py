"""A fuzz in a process of its own: a hang, a blow-up of memory or a crash ends that process, and is a fault, too."""

import subprocess
import sys
from pathlib import Path

import pytest
from fuzz_commands import CHEAP, DEAR, USUAL, Ran, run
from fuzz_judge import faults_of
from fuzz_subjects import SUBJECTS

PROGRAM = Path(__file__).parent / "fuzz.py"
# Few processes: each imports the kit and the readers of its outputs anew.
TOGETHER = (("cpu", "published"), ("gpu", "suite"), ("ranks", "journal"))
# Twenty times what a quiet machine takes.
LIMIT_S = 600


# More mutations are for whoever changes a reader: `tests/fuzz/fuzz.py --times 10`.
@pytest.mark.slow
@pytest.mark.parametrize("names", TOGETHER, ids=" ".join)
def test_no_command_does_what_it_may_not(names, tmp_path):
    last = tmp_path / "last"
    command = [sys.executable, PROGRAM, "--seed", 1, "--times", 1, "--last", last]
    command += [word for name in names for word in ("--subject", name)]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=LIMIT_S, check=False)
    where = last.read_text("utf-8") if last.exists() else "the first mutation"
    ended = f"ended at {where} with {done.returncode}"
    assert done.returncode == 0, f"{done.stdout[-8_000:]}\n{done.stderr[-4_000:]}\n{ended}"


@pytest.mark.parametrize("name", SUBJECTS)
def test_what_is_not_changed_is_read(name, tmp_path):
    """A subject that its reader refuses as it is would test the refusal alone."""
    folder = tmp_path / "named"
    (folder / "out").mkdir(parents=True)
    subject = SUBJECTS[name]()
    subject.write_whole(folder)
    for words in USUAL[subject.kind]:
        ran = run(words, folder)
        assert not ran.is_refused, ran.complained
        assert not list(faults_of(ran, folder / "out"))


def test_every_subject_has_commands():
    assert USUAL.keys() == CHEAP.keys() == DEAR.keys()
    assert {build().kind for build in SUBJECTS.values()} == USUAL.keys()
    assert sorted(name for names in TOGETHER for name in names) == sorted(SUBJECTS)


# What a command may not print or write, each as a fault that the judge finds.
@pytest.mark.parametrize(
    ("words", "printed", "fault"),
    [
        ("compare a.json", "a\x1b[2J", "control"),
        ("compare a.json", "a \u202e b", "control"),
        ("show a.json", "GPU nan %", "number"),
        ("compare a.json --format markdown", "| <img src=zqx> |", "markup"),
        ("compare a.json --format markdown", "[a](https://zqx.example)", "markup"),
        ("compare a.json --format markdown", "see https://zqx.example", "markup"),
        ("compare a.json --format json", '{"step_ns": 1e18}', "number"),
        ("compare a.json --format json", '{"utilization_pct": 125.0}', "number"),
        ("compare a.json --format jsonl", '{"df": NaN}', "format"),
        ("compare a.json --format csv", "name,step_ns\n=1+1,5\n", "format"),
        ("compare a.json --format csv", "name,step_ns\nx,nan\n", "number"),
        ("compare a.json --format junit", "<testsuites><testsuite", "format"),
        ("compare a.json --format prometheus", "x NaN\n", "number"),
    ],
)
def test_the_judge_sees_what_may_not_be(words, printed, fault, tmp_path):
    ran = Ran(words, 0, printed.encode(), b"", None, [], [], 0.0)
    assert [line.partition(":")[0] for line in faults_of(ran, tmp_path)][:1] == [fault]


def test_the_judge_sees_markup_in_a_page_and_a_plot(tmp_path):
    ran = Ran("report a.json -o page.html", 0, b"", b"", None, [], [], 0.0)
    for name, text in (
        ("a.html", "<p onclick=zqx>"),
        ("b.html", "<script>"),
        ("c.html", '<a href="https://zqx.example">'),
        ("d.svg", "<svg><script/></svg>"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert [line.partition(":")[0] for line in faults_of(ran, tmp_path)] == ["markup"]
        (tmp_path / name).unlink()
