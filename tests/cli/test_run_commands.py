"""`kit run --command`: commands are members of rounds like any other, and what is wrong with one is one line."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kit_process import invoke as kit
from refusals import refusal
from small_suite import MEASURE, SUITE, measure

from kit.profile.store import read_profile

SMALL = SUITE.replace(MEASURE, measure(cycles=4, block_s=0.08, energy_s=0))


@pytest.fixture
def folder(tmp_path):
    with contextlib.chdir(tmp_path):
        yield tmp_path


def measured(*words, rounds=3, code=0):
    Path("small.toml").write_text(SMALL)
    ended = kit("run", "small.toml", *words, "--rounds", str(rounds), "--out", "run.json", "--force")
    assert ended.return_value == code, (ended.exception, ended.stderr)
    document = json.loads(kit("compare", "run.json", "--format", "json").stdout)
    (group,) = document["groups"]
    return {row["name"]: row for row in group["rows"]}, document


def test_two_commands_take_turns_and_the_slower_one_is_found(folder):
    rows, document = measured("--command", "old=sleep 0.02", "--command", "new=sleep 0.024")
    assert document["by"] in {"step", "step_ns"}
    assert rows["new"]["versus"]["ratio"] == pytest.approx(1.18, abs=0.08)
    profile = read_profile(folder / "run.json")
    launches = {result.cell.workload: result.launches for result in profile.cells}
    assert {launch.turns for launch in launches["old"]} == {"blocks"}
    assert profile.suite.programs["old"].command.words == ["sleep", "0.02"]


def test_a_rate_is_judged_by_its_figure_and_more_is_better(folder):
    (folder / "bench.sh").write_text('echo "speed $1.$(($$ % 10)) MB/s"\n')
    words = [
        word for name, speed in (("old", 100), ("new", 110)) for word in ("--command", f"{name}=sh bench.sh {speed}")
    ]
    figure = ("--figure", r"speed (\S+)", "--better", "more", "--unit", "MB/s")
    rows, document = measured(*words, *figure)
    assert document["by"] == "figure"
    assert rows["new"]["numbers"]["figure"] == pytest.approx(110.5, abs=1)
    assert rows["old"]["is_baseline"]
    assert rows["new"]["versus"]["ratio"] == pytest.approx(100 / 110, abs=0.01)
    (note,) = [note["what"] for note in document["notes"] if note["what"]["code"] == "figure"]
    assert note["values"] == {"unit": "MB/s", "better": "more"}
    assert "MB/s that the command gives, more is better" in " ".join(kit("compare", "run.json").stdout.split())
    by_time = json.loads(kit("compare", "run.json", "--metric", "step", "--format", "json").stdout)
    assert by_time["by"] in {"step", "step_ns"}
    assert "figure" not in {note["what"]["code"] for note in by_time["notes"]}, "verdicts do not compare it"


def test_a_run_is_judged_by_its_figures_also_while_it_goes_on(folder):
    (folder / "bench.sh").write_text('echo "speed $1.$(($$ % 10)) MB/s"\n')
    words = ("--command", "old=sh bench.sh 100", "--command", "new=sh bench.sh 150", "--figure", r"speed (\S+)")
    Path("small.toml").write_text(SMALL)
    more = ("--better", "more", "--until-precision", "20", "--budget", "15", "--fail-if-slower", "5")
    ended = kit("run", "small.toml", *words, *more, "--out", "run.json")
    # 5: where others disturb it, nothing is resolved.
    assert (ended.exception, ended.return_value in {0, 5}) == (None, True), ended.stderr
    assert "verdicts compare it, slower is worse" in " ".join(ended.stderr.split())
    planned = kit("run", "small.toml", *words, "--better", "more", "--dry-run")
    assert (planned.exception, planned.return_value) == (None, 0), planned.stderr
    other = kit("run", "small.toml", "--command", "old=sleep 1", "--command", "new=sleep 2", "--dry-run")
    assert (other.exception, "by the rounds of" in other.stdout) == (None, False), other.stdout


@pytest.mark.slow
def test_figures_of_unlike_units_are_not_compared(folder):
    for name, unit in (("first", "ms"), ("again", "ms"), ("unlike", "s")):
        measured("--command", "a=echo x 3", "--figure", "x (.)", "--unit", unit)
        (folder / "run.json").rename(folder / f"{name}.json")
    for second, is_compared in (("again", True), ("unlike", False)):
        document = json.loads(kit("compare", "first.json", f"{second}.json", "--format", "json").stdout)
        (row,) = (row for group in document["groups"] for row in group["rows"] if not row["is_baseline"])
        assert bool(row["versus"] and row["versus"]["ratio"]) == is_compared


@pytest.mark.quiet
@pytest.mark.slow
def test_the_gate_and_the_headline_know_what_is_better(folder):
    (folder / "bench.sh").write_text('echo "speed $1.$(($$ % 10)) MB/s"\n')
    words = ["--command", "old=sh bench.sh 100", "--command", "new=sh bench.sh 110", "--figure", r"speed (\S+)"]
    for better, fastest, codes in (("more", "new", (0, 1)), ("less", "old", (1, 0))):
        rows, _ = measured(*words, "--better", better)
        if rows["new"]["versus"]["contention_pct"] is not None:
            pytest.skip("other programs disturbed the cycles, so that there is no verdict")
        assert rows["new"]["versus"]["verdict"] == ("faster" if better == "more" else "slower")
        assert f"{fastest} is the fastest" in kit("compare", "run.json").stdout
        gates = [kit("compare", "run.json", "--baseline", base, "--fail-if-slower", "2") for base in ("old", "new")]
        assert tuple(gate.return_value for gate in gates) == codes
    gate = kit("run", *words, "--better", "less", "--rounds", "3", "--fail-if-slower", "5", "--out", "gate.json")
    assert (gate.return_value, "in 2 of 2 runs: programs: new" in gate.stderr) == (1, True), gate.stderr


@pytest.mark.quiet
@pytest.mark.slow
def test_a_slower_command_fails_in_two_runs_and_a_like_one_passes_in_one(folder):
    gate = ("--command", "base=sleep 0.01", "--rounds", "3", "--out", "run.json", "--fail-if-slower", "20")
    slower = kit("run", *gate, "--command", "head=sleep 0.016")
    if "contended" in slower.stderr:
        pytest.skip("other programs disturbed the cycles, so that there is no verdict")
    assert slower.return_value == 1, slower.stderr
    assert "slower by more than 20 % in 2 of 2 runs: programs: head" in slower.stderr
    assert (slower.stderr.count("against base\n"), slower.stdout) == (2, "run.json\n"), "a table of each run"
    assert len(read_profile(folder / "run.confirm.json").cells) == 2
    (folder / "run.confirm.json").unlink()
    like = kit("run", *gate, "--command", "head=sleep 0.01", "--force")
    if "contended" in like.stderr:
        pytest.skip("other programs disturbed the cycles, so that there is no verdict")
    assert (like.return_value, (folder / "run.confirm.json").exists()) == (0, False), like.stderr


def test_a_command_longer_than_a_block_runs_once_in_it(folder):
    measured("--command", "slow=sleep 0.2", rounds=1)
    (result,) = read_profile(folder / "run.json").cells
    blocks = result.launches[0].blocks
    assert (set(blocks.steps), set(blocks.lead_in)) == ({1}, {0})
    assert len(blocks.cycle) in range(3, 7)  # as many as take the time of the planned ones, some of them repeated


def test_a_command_that_fails_keeps_what_others_measured_and_its_output(folder):
    rows, _ = measured("--command", "bad=sh -c 'echo gone; exit 7'", "--command", "good=true", code=3)
    assert rows["good"]["numbers"]["step_ns"] > 0
    failure = read_profile(folder / "run.json").cells[0].launches[0].failure
    assert "exit code 7" in failure.reason.values["message"] and "gone" in failure.stderr_tail


@pytest.mark.slow
def test_a_command_that_fails_later_keeps_its_blocks(folder):
    (folder / "flaky.sh").write_text("echo x >> count; test $(wc -l < count) -lt 60\n")
    measured("--command", "flaky=sh flaky.sh", "--command", "good=true", rounds=2, code=3)
    launch = read_profile(folder / "run.json").cells[0].launches[0]
    assert launch.failure.phase in {"warmup", "steady"} and launch.phases


def test_runs_with_an_accepted_exit_code_are_counted(folder):
    (folder / "flaky.sh").write_text("echo x >> count; test $(($(wc -l < count) % 10)) != 9 || exit 3\n")
    words = ("--command", "flaky=sh flaky.sh", "--command", "good=true", "--ignore-failure", "3")
    _, document = measured(*words, rounds=2)
    (note,) = [note["what"]["values"] for note in document["notes"] if note["what"]["code"] == "runs_failed"]
    assert note["cell"] == "flaky"
    assert note["failed"] == pytest.approx(note["runs"] / 10, abs=2 + note["runs"] / 50)


@pytest.mark.slow
def test_a_command_that_never_ends_is_ended(folder, monkeypatch):
    monkeypatch.setenv("KIT_PHASE_LIMIT_S", "2")
    measured("--command", "long=sleep 998877", "--command", "good=true", rounds=1, code=3)
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "sleep 998877" not in listed
    failure = read_profile(folder / "run.json").cells[0].launches[0].failure
    assert failure.reason.code == "phase_timeout"


def test_what_a_command_used_is_not_what_its_worker_used(folder):
    rows, _ = measured("--command", f"busy={sys.executable} -S -c 'while sum(range(10**6)) < 0: pass'", rounds=1)
    assert 0.2 < rows["busy"]["numbers"]["cpus"] < 1.2  # others may have the rest; the worker takes 0.03
    assert rows["busy"]["numbers"]["peak_memory_b"] is None


def test_a_gate_says_that_a_cell_failed(folder):
    gate = ("--command", "base=true", "--command", "head=false", "--rounds", "1", "--fail-if-slower", "5")
    ended = kit("run", *gate, "--out", "run.json")
    assert (ended.return_value, "nothing is judged" in ended.stderr.splitlines()[-1]) == (3, True)


SERVER = """import sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        open(sys.argv[3], "a").write("x"); time.sleep(float(sys.argv[2])); self.send_response(200); self.end_headers()
    def log_message(self, *_):
        pass
time.sleep(0.2)
HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
CLIENT = "import sys, urllib.request; urllib.request.urlopen('http://127.0.0.1:' + sys.argv[1])\n"


@pytest.mark.slow
def test_two_versions_of_a_server_in_rounds(folder):
    (folder / "server.py").write_text(SERVER)
    (folder / "client.py").write_text(CLIENT)
    words = []
    for name, delay in (("old", "0.001"), ("new", "0.05")):
        words += ["--serve", f"{name}={sys.executable} {folder}/server.py {{port}} {delay} {name}.log"]
        words += ["--command", f"{name}={sys.executable} client.py {{port}}"]
    rows, _ = measured(*words, rounds=2)
    apart_s = (rows["new"]["numbers"]["step_ns"] - rows["old"]["numbers"]["step_ns"]) / 1e9
    assert 0.02 < apart_s < 0.15, "planted: 0.049 s, in which tests beside it may take a CPU"
    launches = read_profile(folder / "run.json").cells[0].launches
    assert len((folder / "old.log").read_text()) > sum(sum(launch.blocks.steps) for launch in launches)
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert f"{folder}/server.py" not in listed


REFUSED = {
    "no such program": (("--command", "a=nosuchprogram -x"), "no program 'nosuchprogram'"),
    "a shell's operator": (("--command", "a=true | cat"), "only a shell understands '|'; add --shell"),
    "a shell's pattern": (("--command", "a=ls *.c"), "only a shell understands '*.c'"),
    "a shell's variable": (("--command", "a=ls $HOME"), "only a shell understands '$HOME'"),
    "a variable before it": (("--command", "OMP_NUM_THREADS=4 true"), "NAME='env OMP_NUM_THREADS=4 true'"),
    "a figure of nothing": (("--figure", "x (.)", "--program", "x.py"), "--figure belongs to a command"),
    "quoted": (("--command", "a=nosuchprogram '>=3' \"a|b\" x?y=1"), "no program 'nosuchprogram'"),
    "open quotes": (("--command", "a=true 'x"), "close its quotes"),
    "one name twice": (("--command", "a=true", "--command", "a=false"), "two commands are called a"),
    "no words": (("--command", "a="), "names no command"),
    "a server without a command": (("--command", "a=true", "--serve", "b=true {port}"), "no command has this name"),
    "a server without a port": (("--command", "a=true", "--serve", "a=true"), "write {port}"),
    "a pattern without a group": (("--command", "a=true", "--figure", "x"), "has 0 groups"),
    "no pattern": (("--command", "a=true", "--figure", "("), "no regular expression"),
    "a rate": (("--command", "a=true", "--figure", "x (.) MB/s"), "'MB/s' looks like a rate; give --better more"),
    "a rate by its unit": (("--command", "a=true", "--figure", "x (.)", "--unit", "tokens/s"), "looks like a rate"),
    "a variable before its words": (("--command", "a=N=3 true"), "for a variable, write env N=3"),
    "a unit of nothing": (("--command", "a=true", "--unit", "s"), "give --figure"),
    "no exit code": (("--command", "a=true", "--ignore-failure", "x"), "give all, or exit codes"),
    "a batch": (("--command", "a=true", "--batch", "3"), "a command has no batches"),
    "a name of a program, too": (("--command", "a=true", "--program", "a=x.py"), "one name"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_wrong_with_a_command_is_one_line_before_anything_runs(folder, kind):
    words, why = REFUSED[kind]
    (folder / "x.py").write_text("def program(batch, device):\n    return lambda: 1.0\n")
    assert why in refusal(kit("run", *words, "--dry-run"))


@pytest.mark.slow
def test_a_shell_is_asked_for_and_a_name_is_made_of_the_words(folder):
    rows, _ = measured("--shell", "--command", "true | cat", rounds=1)
    assert list(rows) == ["true_cat"]


@pytest.mark.slow
def test_a_run_of_commands_is_resumed_only_where_its_commands_are_named_again(folder):
    words = ["run", "--command", "a=sleep 0.02", "--prepare", "true", "--rounds", "3", "--out", "run.json"]
    running = subprocess.Popen([sys.executable, "-m", "kit", *words], stderr=subprocess.PIPE, text=True)
    while "round 1 of 3 done" not in (running.stderr.readline() or "round 1 of 3 done"):
        time.sleep(0.01)
    running.terminate()
    printed = running.communicate()[1]
    assert "--command 'a=sleep 0.02'" in printed and "--prepare true --resume --out run.json" in printed
    assert "does not name" in refusal(kit("run", "--resume", "--out", "run.json"))
    assert "give it as it was" in refusal(kit("run", "--command", "a=sleep 9", "--resume", "--out", "run.json"))
    assert "does not name" in refusal(kit("run", "--command", "a=sleep 0.02", "--resume", "--out", "run.json"))
    assert kit("run", "--command", "a=sleep 0.02", "--prepare", "true", "--resume", "--out", "run.json").exit_code == 0
    assert len(read_profile(folder / "run.json").cells[0].launches) == 3
    assert not os.path.exists("run.json.rounds")  # noqa: PTH110


@pytest.mark.slow
def test_a_suites_file_names_commands(folder):
    (folder / "mine.toml").write_text(
        'name = "mine"\ntitle = "Mine"\n[cells]\nbatches = [1]\n'
        f"{measure()}"
        '[programs.a.command]\nwords = ["true"]\n[programs.b.command]\nwords = ["sleep", "0.01"]\nexit_codes = [0, 1]\n'
    )
    ended = kit("run", "mine.toml", "--out", "run.json")
    assert ended.exit_code == 0 and "mine.toml runs sleep 0.01 as program b" in ended.stderr
    (folder / "mine.toml").write_text('name = "mine"\ntitle = "Mine"\n[cells]\n[programs.a]\n')
    assert "give either path or command" in refusal(kit("run", "mine.toml"))
