import os
import subprocess
import sys
import time

import pytest

from kit.sensors import names, process_tree
from kit.sensors.process_tree import ProcessTree, child_pids

BURN = "import time, resource\nend = time.process_time() + {seconds}\nwhile time.process_time() < end: pass\n"


def test_counts_the_cpu_time_of_a_burning_process():
    before = time.process_time()
    tree = ProcessTree(os.getpid())
    first = tree.usage().cpu_s
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
    burnt = time.process_time() - before
    assert tree.usage().cpu_s - first == pytest.approx(burnt, abs=0.05)
    tree.close()


def test_counts_a_child_while_it_lives_and_after_it_was_reaped(monkeypatch):
    monkeypatch.setattr(process_tree, "RESCAN_NS", 0)
    monkeypatch.setattr(process_tree, "SAME_TICK_NS", 0)
    tree = ProcessTree(os.getpid())
    first = tree.usage().cpu_s
    code = BURN.format(seconds=0.3) + "print(time.process_time(), flush=True)\ninput()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    spent = float(child.stdout.readline())
    alive = tree.usage().cpu_s - first
    child.communicate("\n")
    reaped = tree.usage().cpu_s - first
    assert spent <= alive + 0.05
    assert reaped == pytest.approx(alive, abs=0.15)  # what it did on the way out is added
    tree.close()


def test_what_a_child_did_before_it_was_found_is_no_jump(monkeypatch):
    monkeypatch.setattr(process_tree, "SAME_TICK_NS", 0)
    tree = ProcessTree(os.getpid())
    tree.usage()  # looks for children now, and not again for a second
    burn_and_wait = "print(flush=True)\ninput()\n"
    code = BURN.format(seconds=0.5) + burn_and_wait + BURN.format(seconds=0.3) + burn_and_wait
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child.stdout.readline()
    before = tree.usage().cpu_s
    monkeypatch.setattr(process_tree, "RESCAN_NS", 0)
    found = tree.usage().cpu_s
    assert child.pid in tree._members
    assert found - before < 0.1
    child.stdin.write("\n")
    child.stdin.flush()
    child.stdout.readline()
    burnt = tree.usage().cpu_s
    assert burnt - found == pytest.approx(0.3, abs=0.1)
    child.communicate("\n")
    assert tree.usage().cpu_s == pytest.approx(burnt, abs=0.15)  # reaped whole, and still no jump
    tree.close()


def test_leaves_the_excluded_child_out(monkeypatch):
    monkeypatch.setattr(process_tree, "SAME_TICK_NS", 0)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert child.pid in child_pids(os.getpid())
    whole, without = ProcessTree(os.getpid()), ProcessTree(os.getpid(), excluded_pid=child.pid)
    deadline = time.monotonic() + 5
    while not (resident := (whole.usage().resident_b, without.usage().resident_b))[0] > resident[1]:
        assert time.monotonic() < deadline, resident
    child.communicate(b"\n")


def test_a_gone_process_reads_none():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    sensors = process_tree.open_all(child.pid)
    assert [sensor.probe().status for sensor in sensors] == ["measured", "measured"]
    child.communicate(b"\n")
    assert [sensor.read().value for sensor in sensors] == [None, None]


def test_a_process_that_never_was():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    reports = [sensor.probe() for sensor in process_tree.open_all(child.pid)]
    assert [report.name for report in reports] == [names.PROCESS_TIME, names.RESIDENT_MEMORY]
    assert all(report.status == "unavailable" and "cannot be watched" in report.reason for report in reports)
