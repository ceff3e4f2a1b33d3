"""Commands as steps: their time, their figure, their exit codes, what they leave behind, and their servers."""

import ctypes
import errno
import os
import shlex
import statistics
import sys
import textwrap
import time

import pytest
from refusals import refused

from kit.backends.program.command import PR_SET_CHILD_SUBREAPER, CommandProgram, figure_in
from kit.clock import now_ns
from kit.profile.program_source import CommandSource


@pytest.fixture(autouse=True)
def adopts_no_more():
    """Pytest's process is no worker: the tests after these must not become parents of what theirs leave behind."""
    yield
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0)


@pytest.fixture
def program():
    """Return a started command; it is closed at the end."""
    started = []

    def start(*words, variables=None, **more):
        source = CommandSource(words=[str(word) for word in words], **more)
        started.append(CommandProgram(source, variables or {}))
        return started[-1]

    yield start
    for each in started:
        each.close()


def python(code):
    return sys.executable, "-S", "-c", textwrap.dedent(code)


def stepped(command, count=1):
    command.begin()
    times_ns = []
    for _ in range(count):
        begin_ns = now_ns()
        command.step(None)
        times_ns.append(now_ns() - begin_ns)
    command.check(None, [10**6])
    return times_ns


def test_a_step_takes_as_long_as_the_command(program):
    assert 0.1e9 < statistics.median(stepped(program("sleep", "0.1"), 3)) < 0.2e9


def test_an_old_kernel_is_named(program, monkeypatch):
    def lacks(_process):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", lacks)
    assert "need Linux 5.3" in refused(program, "true")


def test_an_exit_code_that_is_not_accepted_ends_a_step_and_what_was_printed_is_kept(program, capfd):
    command = program(*python("print('so far'); raise SystemExit(3)"))
    assert "ended with exit code 3; --ignore-failure 3 accepts that" in refused(command.step, None)
    assert "so far" in capfd.readouterr().err
    assert program("sh", "-c", "exit 3", exit_codes=[0, 3]).step(None) == 3
    assert program("sh", "-c", "exit 4", exit_codes=None).step(None) == 4
    assert "was ended by SIGSEGV" in refused(program("sh", "-c", "kill -SEGV $$").step, None)
    # Python ignores this signal, which a command must not inherit.
    assert "was ended by SIGPIPE" in refused(program("sh", "-c", "kill -PIPE $$").step, None)


def test_preparation_is_in_no_figure_and_must_succeed(program, tmp_path):
    command = program("sleep", "0.02", prepare=["sh", "-c", f"sleep 0.2; echo x >> {tmp_path}/prepared"])
    assert min(stepped(command, 3)) > 0.22e9
    assert 0.02 < statistics.median(command.figures) < 0.2
    assert (tmp_path / "prepared").read_text() == "x\nx\nx\n"
    command.begin()
    assert command.figures == []
    assert "exit code 1" in refused(program("true", prepare=["false"], exit_codes=[0, 1]).step, None)


def test_more_output_than_a_pipe_holds_is_read_and_its_end_kept(program, capfd):
    assert program("head", "-c", "3000000", "/dev/zero").step(None) == 0
    command = program("sh", "-c", "seq 1 40000; exit 1")
    refused(command.step, None)
    printed = capfd.readouterr().err
    assert printed.endswith("39999\n40000\n\n") and len(printed) < 70_000
    too_much = program("head", "-c", "20000000", "/dev/zero", figure="(1)")
    assert "more than 16 MiB" in refused(too_much.step, None)


def test_what_a_command_leaves_running_is_named(program):
    command = program("sh", "-c", "sleep 7 & echo done")
    command.step(None)
    assert "left running: sleep" in refused(command.check, None, [10**6])
    (left,) = command._children()
    os.kill(left, 9)
    os.waitpid(left, 0)
    # What ends a little later than the command is no such process.
    stepped(program("sh", "-c", "sleep 0.1 & echo done"))


def test_a_command_gets_the_variables_of_its_user(program, monkeypatch):
    monkeypatch.setenv("PLANTED", "by the worker")
    monkeypatch.setenv("KEPT", "kept")
    command = program("sh", "-c", 'echo "$KEPT $PLANTED $GIVEN"; exit 1', variables={"PLANTED": None, "GIVEN": "7"})
    with pytest.MonkeyPatch.context() as patch:
        printed = []
        patch.setattr(command, "_fail", lambda _why, output: printed.append(bytes(output)))
        command.step(None)
    assert printed == [b"kept  7\n"]


SERVER = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    asked, _ = server.accept()
    asked.sendall(b"3.5"); asked.close()
"""
CLIENT = """
import socket, sys
print("figure:", socket.create_connection(("127.0.0.1", int(sys.argv[1]))).recv(9).decode())
"""


def test_a_server_runs_until_it_is_stopped_and_has_a_port_of_its_own(program):
    serve = [*python(SERVER), "{port}"]
    first, second = (program(*python(CLIENT), "{port}", serve=serve, figure="figure: (.*)") for _ in range(2))
    for command in (first, second):
        stepped(command, 2)
        assert command.figures == [3.5, 3.5]
    assert first._words != second._words
    process = first._server
    first.close()
    assert not os.path.exists(f"/proc/{process}")  # noqa: PTH110
    first.close = lambda: None


def test_a_server_that_ends_is_said():
    source = CommandSource(words=["true"], serve=["sh", "-c", ": {port}; exit 1"])
    assert "ended before it answered" in refused(CommandProgram, source, {})
    assert "cannot be started" in refused(CommandProgram(CommandSource(words=["/nowhere"]), {}).step, None)


RESULTS = '{"results": [{"samples_ns": [1, 2, 6], "name": "x"}], "more": {"a.b": 1, "t": 7.5}}'
FIGURES = {
    "a pattern": ("warm\ntokens/s: 81.5\n", r"tokens/s: ([0-9.]+)", 81.5),
    "a line": ("4\nx 5\n", r"^x (\d+)$", 5),
    "thousands": ("rate 1,234.5 MB/s", r"rate (\S+)", 1234.5),
    "an exponent": ("t=1.5e-3", r"t=(\S+)", 0.0015),
    "samples": (f"log\n{RESULTS}\nbye", "json:results.samples_ns", 3),
    "behind lines with brackets": (f"[10:00:00] INFO\n[1]\n{RESULTS}", "json:more.t", 7.5),
    "a place": (RESULTS, "json:results.0.samples_ns.2", 6),
    "a number": (RESULTS, "json:more.t", 7.5),
    "the document itself": ("[2, 4]", "json:", 3),
}
NO_FIGURES = {
    "none": ("nothing", r"x (\d+)", "printed no figure"),
    "two": ("x 1 x 2", r"x (\d+)", "printed 2 figures"),
    "no number": ("x abc", r"x (\w+)", "takes 'abc'"),
    "a part of an exponent": ("x 1.2e-05 s", r"x ([0-9.]+)", "'1.2e-05 s', of which"),
    "a part of a number": ("x 1,234", r"x ([0-9]+)", "'1,234', of which"),
    "a comma alone": ("x 1,234", r"x (\S+)", "may separate thousands or decimals"),
    "below zero": ("x -1", r"x (\S+)", "a figure is a number above 0"),
    "infinite": ("x inf", r"x (\S+)", "a figure is a number above 0"),
    "no JSON": ("nothing", "json:a", "printed no JSON with 'a'"),
    "another path": (RESULTS, "json:results.samples", "printed no JSON with 'results.samples'"),
    "a text": (RESULTS, "json:results.name", "printed no figure"),
    "an empty list": ('{"a": []}', "json:a", "printed no figure"),
    "true": ('{"a": true}', "json:a", "printed no figure"),
    "deep": ("[" * 100_000, "json:a", "printed no JSON"),
}


@pytest.mark.parametrize("kind", FIGURES)
def test_the_figure_that_a_command_prints(kind):
    text, figure, value = FIGURES[kind]
    assert figure_in(text.encode(), figure, "cmd") == pytest.approx(value)


@pytest.mark.parametrize("kind", NO_FIGURES)
def test_what_is_no_figure_is_one_line(kind):
    text, figure, why = NO_FIGURES[kind]
    assert why in refused(figure_in, text.encode(), figure, "cmd")


def test_a_run_costs_no_more_than_the_command(program):
    """The worker waits for the process by its descriptor: no poll in a loop, and no thread."""
    command = program("true")
    stepped(command, 5)
    used_s, begin_s = time.process_time(), time.perf_counter()
    command._words = shlex.split("sleep 0.3")
    command.step(None)
    assert time.perf_counter() - begin_s > 0.3
    assert time.process_time() - used_s < 0.05
