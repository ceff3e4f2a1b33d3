"""What is decided before the first round: where the profile goes, and whether a run may go on here."""

import re
import shlex
from dataclasses import replace

import msgspec
import pytest
from profile_builder import changed, identity
from refusals import refused
from scripted_launcher import plan_of, suite

from kit.fingerprint.fingerprint import kit_revision
from kit.profile.program_source import ProgramSource, file_sha256
from kit.profile.schema import Kit
from kit.profile.unfinished import folder_of
from kit.runner import resumable
from kit.runner.prepare import ensure_data
from kit.runner.resumable import check_options, check_resumable, without_counters
from kit.runner.running import profile_path
from kit.suites.suite import load_suite
from kit.version import __version__
from kit.workloads.workload_catalog import DATASETS

CREATED = "2026-01-02T03:04:05+00:00"


def path_of(out, name="quick"):
    return profile_path(None if out is None else str(out), name, "0123456789abcdef", CREATED)


def test_a_folder_gets_a_name_within(tmp_path):
    assert path_of(tmp_path) == tmp_path / "quick-20260102T030405Z-01234567.json"
    assert path_of(tmp_path / "run.json") == tmp_path / "run.json"
    assert path_of(None).name == "quick-20260102T030405Z-01234567.json"
    assert path_of(tmp_path, "../../etc/\x1b").parent == tmp_path, "a suite's own file says what it is called"


def test_beside_an_unfinished_run_force_resumes_or_goes_elsewhere(tmp_path):
    path = tmp_path / "my run.json"
    path.touch()
    folder_of(path).mkdir()
    line = refused(profile_path, str(path), "quick", "0" * 16, CREATED, replace=True)
    (resume,) = re.findall("`(.*?)`", line)
    assert shlex.split(resume)[2:] == ["--resume", "--out", str(path)]
    assert "another --out" in line


def test_the_images_say_that_a_mount_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("KIT_DATA", str(tmp_path))
    monkeypatch.setenv("KIT_IMAGE", "steadykit:cpu")
    monkeypatch.setitem(DATASETS, "mnist", replace(DATASETS["mnist"], mirrors=()))
    used, why = ensure_data(plan_of(suite()).cells, "auto")
    assert (used, why.code) == ({"mnist": "synthetic"}, "data_not_mounted")
    _, why = ensure_data(plan_of(suite(workloads=["gpt2"])).cells, "auto")
    assert why.code == "data_is_made", "a mount would not help"


def begun(**changes):
    """The plan of a run that was begun on the machine of `profile_builder`, by this kit."""
    plan = plan_of(suite(backends=["torch"]))
    return msgspec.structs.replace(plan, kit=Kit(version=__version__, revision=kit_revision()), **changes)


@pytest.fixture
def here(monkeypatch):
    def be(**more):
        monkeypatch.setattr(resumable, "identify", lambda *_, **__: identity(**more))

    be()
    return be


def test_what_has_changed_is_named(here):
    check_resumable(begun(), [0, 1])
    assert "usable CPUs was 0, 1 when it started and is 0 now" in refused(check_resumable, begun(), [0])
    for change, says in (
        ({"kernel": "7.0.0"}, "kernel was 6.1.0 when it started and is 7.0.0"),
        ({"packages": {"torch": "3.0", "jax": "0.10", "tensorflow": "2.21"}}, "software.package.torch was 2.0"),
        ({"cpu_model": "Another CPU"}, "cpu.model"),
        ({"facts": {"memory_b": 1 << 30}}, "memory_b"),
        ({"hostname_sha256": "f" * 64}, "hostname"),
    ):
        here(**change)
        assert says in refused(check_resumable, begun(), [0, 1])
    for kit, says in (
        (Kit(version="0.0.1", revision=kit_revision()), "the kit was 0.0.1"),
        (Kit(version=__version__, revision="f00"), "the kit's revision was f00"),
    ):
        assert says in refused(check_resumable, msgspec.structs.replace(begun(), kit=kit), [0, 1])


@pytest.mark.parametrize("name", ["mine.toml", "mine"])
def test_options_given_again_are_those_of_the_run(tmp_path, name):
    suite_file = tmp_path / name
    suite_file.write_text('name = "mine"\ntitle = "Mine"\n[cells]\nworkloads = ["mlp"]\nbackends = ["torch"]\n')
    plan = begun(options={"SUITE": str(suite_file), "--seed": 0, "--batch": [32, 64], "--rounds": None})
    used = msgspec.structs.replace(plan.suite, sha256=load_suite(str(suite_file)).sha256)
    plan = msgspec.structs.replace(plan, suite=used)
    check_options(plan, {})
    check_options(plan, plan.options)
    assert "--rounds is 3 here and not given in" in refused(check_options, plan, {"--rounds": 3})
    suite_file.write_text(suite_file.read_text().replace("mlp", "cnn"))
    assert f"{name} was edited" in refused(check_options, plan, {"SUITE": str(suite_file)})


def test_a_program_that_was_edited_does_not_go_on(here, tmp_path):
    path = tmp_path / "model.py"
    path.write_text("def program(batch, device): ...")
    source = ProgramSource(path=str(path), function="program", takes_task=False, sha256=file_sha256(path))
    plan = begun()
    plan = msgspec.structs.replace(plan, suite=msgspec.structs.replace(plan.suite, programs={"mine": source}))
    check_resumable(plan, [0, 1])
    path.write_text("def program(batch, device, task): ...")
    assert "model.py of program mine was" in refused(check_resumable, plan, [0, 1])
    path.unlink()
    assert "is not given now" in refused(check_resumable, plan, [0, 1])


def test_a_container_may_have_another_host_name_and_nothing_else(here):
    inside = {"container.engine": "docker", "container.image": "x"}
    plan = begun(identity=identity(facts=inside))
    here(facts=inside, hostname_sha256="f" * 64)
    check_resumable(plan, [0, 1])
    here(facts=inside | {"container.image": "y"})
    assert "container.image" in refused(check_resumable, plan, [0, 1])


def test_counters_from_before_a_pause_are_null_with_the_reason():
    plan = begun()
    state = changed(plan.state_before, {"steal_ns": 5, "gpu.0.power_violation_ns": 5})
    resumed = without_counters(msgspec.structs.replace(plan, state_before=state)).state_before
    assert resumed.facts == state.facts | {"steal_ns": None, "gpu.0.power_violation_ns": None}
    assert {name: why.code for name, why in resumed.reasons.items()} == {
        "steal_ns": "run_resumed",
        "gpu.0.power_violation_ns": "run_resumed",
    }
