"""What a worker says of the code that it imported, and which threads computed between two looks."""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time

import pytest
from kit_process import REPOSITORY
from planted_files import plant

from kit.backends.protocol import Program
from kit.profile.fields import Reason
from kit.profile.schema import LaunchPart
from kit.worker.evidence import ThreadUse, compilations, name_kernels, what_ran

# Which runs in a process of its own, as a worker does.
SHOW = """
import sys
sys.path[:0] = {paths!r}
{imports}
from kit.worker import evidence
for name, value in {limits!r}.items():
    setattr(evidence, name, value)
import msgspec
print(msgspec.json.encode(evidence.imported_code()).decode())
"""
SITE = "lib/site-packages"


def imported(folder, imports, *paths, **limits):
    """What a process has imported that ran `imports`, with these folders first on its path."""
    text = SHOW.format(paths=[str(folder / path) for path in paths], imports=imports, limits=limits)
    done = subprocess.run(
        [sys.executable, "-P", "-c", text], env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    code = json.loads(done.stdout)
    return {file["path"]: file["sha256"] for file in code["files"]}, code["left_out"], code["environment_sha256"]


def write(folder, **files):
    """Write modules; two underscores in a name stand for a slash."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def install(folder, name, origin, text="VALUE = 1\n"):
    """Install a module as pip does it, into a folder of installed packages."""
    info = folder / SITE / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / SITE / f"{name}.py").write_text(text)
    (info / "RECORD").write_text(f"{name}.py,sha256=x,1\n{name}-1.0.dist-info/RECORD,,\n")
    if origin:
        (info / "direct_url.json").write_text(json.dumps({"url": "file:///x"} | origin))


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("is_worktree", [False, True])
def test_paths_begin_at_the_repository_or_where_it_was_imported_from(tmp_path, is_worktree):
    write(tmp_path, repo__src__package__inner="A = 1\n", repo__src__names__part="", loose__module="B = 1\n")
    git = tmp_path / "repo/.git"
    git.write_text("gitdir: elsewhere\n") if is_worktree else git.mkdir()
    files, left_out, _ = imported(
        tmp_path, "import package.inner, names.part, module, json, numpy", "repo/src", "loose"
    )
    assert files == {
        "src/package/inner.py": sha256("A = 1\n"), "src/names/part.py": sha256(""), "module.py": sha256("B = 1\n"),
    }  # fmt: skip
    assert left_out == 0


def test_the_same_content_elsewhere_gives_the_same(tmp_path):
    records = []
    for side in ("base", "head"):
        write(tmp_path / side, package="A = 1\n")
        records.append(imported(tmp_path, "import package", side))
    assert records[0] == records[1]


def test_what_is_beyond_the_limits_or_gone_is_counted(tmp_path):
    write(tmp_path, a="1" * 9, b="2" * 9, c="3" * 9)
    assert imported(tmp_path, "import a, b, c", ".", FILES_MAX=2)[1] == 1
    files, left_out, _ = imported(tmp_path, "import a, b, c", ".", BYTES_MAX=20)
    assert (len(files), left_out) == (2, 1)
    files, left_out, _ = imported(tmp_path, "import a, b, c, os; os.remove(a.__file__)", ".")
    assert (sorted(files), left_out) == (["b.py", "c.py"], 1)


@pytest.mark.parametrize("origin", [{"dir_info": {}}, {"vcs_info": {"vcs": "git", "commit_id": "a"}}])
def test_a_copy_that_was_built_from_a_folder_is_recorded_by_its_content(tmp_path, origin):
    install(tmp_path, "mine", origin)
    files, _, _ = imported(tmp_path, "import mine", SITE)
    assert files == {"mine.py": sha256("VALUE = 1\n")}


def test_other_installed_packages_belong_to_the_environment(tmp_path):
    records = []
    for side, name, origin in (
        ("a", "theirs", None),
        ("b", "theirs", None),
        ("c", "more", None),
        ("d", "theirs", {"archive_info": {"hashes": {"sha256": "d"}}}),
        ("e", "theirs", {"archive_info": {"hashes": {"sha256": "e"}}}),
    ):
        install(tmp_path / side, name, origin)
        files, _, environment = imported(tmp_path, f"import {name}", f"{side}/{SITE}")
        assert files == {}
        records.append(environment)
    assert records[0] == records[1] and len(set(records)) == 4


def test_a_module_that_loads_when_it_is_touched_is_not_touched(tmp_path):
    write(tmp_path, lazy="raise RuntimeError('touched')\n")
    lazily = """
import importlib.util
spec = importlib.util.find_spec("lazy")
spec.loader = importlib.util.LazyLoader(spec.loader)
sys.modules["lazy"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["lazy"])
sys.modules["odd"], sys.modules["none"] = object(), None
"""
    imported(tmp_path, lazily, ".")


def planted(folder, **ticks):
    """Tasks with so much user time; a tenth as much of the kernel's."""
    stat = "7 (a b) c) S 1 1 1 0 -1 64 0 0 0 0 {user} {system} 0 0 20 0"
    return plant(folder, {f"{name}/stat": stat.format(user=user, system=user // 10) for name, user in ticks.items()})


@pytest.mark.parametrize(
    ("before", "after", "used"),
    [
        ({"1": 50}, {"1": 150, "2": 90, "3": 4}, 2),  # 3 waits; 2 was not there before
        ({"1": 500, "2": 0}, {"1": 510, "2": 200}, 2),  # the first was busy before the blocks alone
        ({"1": 500, "2": 0}, {"1": 505, "2": 200}, 1),
        ({}, {"1": 5}, "threads_hardly_ran"),
        ({}, {}, "not_shown"),
    ],
)
def test_threads_with_a_share_of_the_busiest_ones_time(tmp_path, before, after, used):
    use = ThreadUse(planted(tmp_path, **before))
    planted(tmp_path, **after)
    answer = use.used()
    assert (answer.code if isinstance(answer, Reason) else answer.threads) == used


@pytest.mark.parametrize(
    ("allowed", "placement"),
    [
        ({"1": "0-1", "2": "0-1", "3": "0"}, {(0, 1): 2}),  # 3 waits
        ({"1": "0", "2": "0"}, {(0,): 2}),
        ({"1": "0", "2": "1,3-4"}, {(0,): 1, (1, 3, 4): 1}),
        ({"1": "0"}, None),  # one ended while they were looked at
        ({"1": "0", "2": ""}, None),
    ],
)
def test_the_cpus_of_the_threads_that_computed(tmp_path, allowed, placement):
    use = ThreadUse(planted(tmp_path, **{"1": 0, "2": 0, "3": 0}))
    planted(tmp_path, **{"1": 100, "2": 90, "3": 4})
    status = "Name:\tpython\nCpus_allowed:\t3\nCpus_allowed_list:\t{}\nMems_allowed:\t1\n"
    plant(tmp_path, {f"{name}/status": status.format(cpus) for name, cpus in allowed.items()})
    known = use.used().placement
    assert (known and {tuple(alike.cpus): alike.threads for alike in known}) == placement


def test_only_threads_that_ran_in_the_blocks_are_counted():
    def burn():
        end = time.thread_time() + 0.25
        while time.thread_time() < end:
            pass

    waiting = threading.Event()
    idle = threading.Thread(target=waiting.wait)
    idle.start()
    use = ThreadUse()
    second = threading.Thread(target=lambda: (burn(), waiting.wait()))
    second.start()
    burn()
    used = use.used()
    waiting.set()
    assert used.threads == 2
    assert [(alike.threads, alike.cpus) for alike in used.placement] == [(2, sorted(os.sched_getaffinity(0)))]
    idle.join()
    second.join()


class Unknown(Program):
    """A program whose framework has changed what nobody promises."""

    def compilations(self):
        raise AttributeError("module has no\nattribute 'counters'")

    def what_ran(self, batch):
        raise SystemExit(batch)

    def kernels(self):
        raise NotImplementedError("no such stage")


def test_a_record_of_a_framework_that_fails_is_a_reason():
    counted = compilations(Unknown())
    assert counted.count is None and counted.reason.code == "compilations_not_counted"
    assert counted.reason.values["error"] == "AttributeError: module has no attribute 'counters'"
    named = name_kernels(Unknown(), LaunchPart())
    assert not named.kernels and named.kernels_unnamed.code == "kernels_not_named"
    assert what_ran(Unknown(), iter([7])).reason.values == {"error": "SystemExit: 7"}
    assert what_ran(Unknown(), iter([])).reason.code == "fit_is_over"
