"""Programs that end, stop, fork or break their process: each ends in its result, or in one line with file and line."""

import os
import time

import psutil
import pytest
from msgspec.structs import replace
from real_worker import GROUP, block_of, launch_of, spec_of, worker_of

from kit.profile.cell import OWN, Cell
from kit.profile.program_source import ProgramSource, file_sha256
from kit.report.reasons_in_words import sentence

BEGIN = """
import ctypes, operator, os, resource, signal, subprocess, sys
import numpy as np

x, steps = np.ones((64, 64), np.float32), 0


def program(batch, device):
    return step


def step():
    global steps
    steps += 1
    if steps == 5:
        bad()
    return x @ x


def bad():
"""
# What a program does in its fifth step, and how its launch ends.
ENDS = {
    "os._exit(7)": "ended with exit code 7",
    "os.execv(sys.executable, ['python', '-c', ''])": "ended with exit code 0",
    "os.execlp('false', 'false')": "ended with exit code 1",
    "ctypes.string_at(0)": "killed by SIGSEGV",
    "os.abort()": "killed by SIGABRT",
    "os.kill(os.getpid(), signal.SIGKILL)": "killed by SIGKILL",
    "os.killpg(0, 9)": "killed by SIGKILL",
    "os.kill(os.getpid(), signal.SIGTERM)": "killed by SIGTERM",
    "signal.raise_signal(signal.SIGALRM)": "killed by SIGALRM",
    "sys.stderr = None; os.closerange(0, 3); os._exit(8)": "ended with exit code 8",
    "raise GeneratorExit('enough')": "GeneratorExit: enough",
    "raise type('Mine', (BaseException,), {})('mine')": "Mine: mine",
    "raise type('Mute', (Exception,), {'__str__': None})": "Mute: no message",
    "raise ValueError('\\udcff')": "ValueError: \\udcff",
    "sys.stderr = sys.stdout = None; raise ValueError('mute')": "ValueError: mute",
    "sys.stderr = sys.__stderr__ = object(); raise ValueError('odd')": "ValueError: odd",
    "next(iter(()))": "StopIteration: no message",
}
RUNS = (
    "os.kill(os.getpid(), signal.SIGSTOP)",
    "os.killpg(0, signal.SIGTSTP)",
    "os.fork()",
    "os.fork() or sys.exit(3)",
    "os.fork() or os._exit(4)",
    "os.fork() or ctypes.string_at(0)",
    "os.environ.clear(); os.chdir('/')",
    "sys.stdout = sys.stderr = object()",
    "os.closerange(0, 3)",
    "print('x' * 10_000_000)",
    "os.write(1, b'{}\\n')",
    "[signal.signal(number, signal.SIG_IGN) for number in (1, 2, 15, 17)]",
    "sys.settrace(lambda *_: None)",
)
# The others take a second each, and differ from these in what no code of ours decides.
QUICK = (
    "os._exit(7)",
    "ctypes.string_at(0)",
    "os.kill(os.getpid(), signal.SIGKILL)",
    "raise GeneratorExit('enough')",
    "os.kill(os.getpid(), signal.SIGSTOP)",
    "os.fork() or sys.exit(3)",
)
CELL = Cell(
    workload="model", backend="program", device="cpu", task="infer", batch=4, precision=OWN, compile_mode=OWN, feed=OWN
)


def marked(programs):
    return [bad if bad in QUICK else pytest.param(bad, marks=pytest.mark.slow) for bad in programs]


@pytest.fixture
def ended(tmp_path):
    """What runs a program that does something in its fifth step; returns its launch, and the line."""

    def run(bad, step="step"):
        path = tmp_path / "model.py"
        path.write_text(f"{BEGIN.replace('return step', f'return {step}')}    {bad}\n")
        source = ProgramSource(path=str(path), function="program", takes_task=False, sha256=file_sha256(path))
        spec = spec_of(CELL)
        spec = spec._replace(sources={"model": source}, prepare=replace(spec.prepare, sources=[source]))
        with worker_of(spec, warmup_s=0.01) as worker:
            worker.build(CELL.key, GROUP)
            worker.warm_up(CELL.key, GROUP)
            measured = block_of(worker, CELL.key, 0, 0.02)
            if measured is not None:
                worker.add(CELL.key, GROUP, *measured)
            worker.conclude(CELL.key)
            worker.finish()
            return launch_of(worker, CELL), f"({path}, line {len(BEGIN.splitlines()) + 1})"

    return run


@pytest.mark.parametrize("bad", marked(ENDS))
def test_what_ends_a_program_is_one_line(ended, bad):
    launch, line = ended(bad)
    assert launch.failure.phase == "warmup"
    assert sentence(launch.failure.reason) == f"{ENDS[bad]} {line}"
    assert "most recent call" not in launch.failure.stderr_tail


@pytest.mark.parametrize("bad", marked(RUNS))
def test_what_ends_nothing_is_measured(ended, bad):
    launch, _ = ended(bad)
    assert launch.failure is None
    assert launch.gave_number


def test_files_that_a_program_closes_without_having_opened_them_are_named(ended):
    launch, _ = ended("os.closerange(3, 256)")
    assert "the program closed files that it had not opened" in sentence(launch.failure.reason)


@pytest.mark.slow
def test_an_end_in_no_line_of_the_users_has_no_stack_for_a_message(ended):
    launch, _ = ended("__import__('threading').Thread(target=os._exit, args=(5,)).start(); signal.pause()")
    assert sentence(launch.failure.reason) == "ended with exit code 5: no message"


@pytest.mark.slow
def test_what_a_program_printed_is_kept_without_the_stack_of_its_end(ended):
    launch, _ = ended("print('out of ink'); os._exit(7)")
    assert launch.failure.stderr_tail == "out of ink"
    launch, _ = ended("print('out of ink', flush=True); ctypes.string_at(0)")
    assert launch.failure.stderr_tail == "out of ink"


@pytest.mark.parametrize(
    "options",
    [
        pytest.param("", marks=pytest.mark.slow),
        pytest.param(", env={}", marks=pytest.mark.slow),
        ", env={}, start_new_session=True",
    ],
)
def test_children_end_with_their_program(ended, tmp_path, options):
    pids = tmp_path / "pids"
    # The shell is the child; it leaves a child of its own behind.
    launch, _ = ended(f"subprocess.Popen(['/bin/sh', '-c', 'sleep 1000 & echo $! > {pids}']{options}).wait()")
    assert launch.gave_number
    end_s = time.monotonic() + 5
    while psutil.pid_exists(int(pids.read_text())) and time.monotonic() < end_s:
        time.sleep(0.05)
    assert not psutil.pid_exists(int(pids.read_text()))


@pytest.mark.slow
def test_the_functions_of_python_are_its_own_in_processes_that_a_program_forks(ended, tmp_path):
    answer = tmp_path / "answer"
    launch, _ = ended(
        f"os.fork() or (open({str(answer)!r}, 'w').write(str(__import__('faulthandler').is_enabled())), os._exit(0))"
    )
    assert launch.gave_number
    assert answer.read_text() == "False"
    assert os._exit.__name__ == "_exit"


@pytest.mark.slow
def test_a_process_that_a_program_forks_keeps_the_handlers_of_the_program(ended, tmp_path):
    answer = tmp_path / "answer"
    handle = f"signal.signal(signal.SIGUSR1, lambda *_: open({str(answer)!r}, 'w').write('handled'))"
    launch, _ = ended(f"{handle}; os.fork() or (os.kill(os.getpid(), signal.SIGUSR1), os._exit(0))")
    assert launch.gave_number
    assert answer.read_text() == "handled"


def test_a_step_that_is_no_code_of_the_users_has_the_line_of_its_function(ended, tmp_path):
    launch, _ = ended("pass", step="operator.itemgetter")
    line = BEGIN.splitlines().index("def program(batch, device):") + 1
    assert sentence(launch.failure.reason).endswith(f"({tmp_path / 'model.py'}, line {line})")


@pytest.mark.slow
@pytest.mark.parametrize("bad", ["while True: pass", "__import__('threading').Event().wait()"])
def test_where_a_program_hangs_is_told_at_the_limit(ended, monkeypatch, bad):
    monkeypatch.setenv("KIT_PHASE_LIMIT_S", "6")
    launch, line = ended(bad)
    assert sentence(launch.failure.reason) == f"no answer within 6.00 s {line}"
