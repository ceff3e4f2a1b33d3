"""What cells are called where they stand alone."""

import profile_builder as b
import pytest
from kit_process import invoke
from msgspec.structs import replace
from profile_builder import cell

from kit.compare.naming import cell_names, titles


def names(*cells):
    return list(cell_names(cells).values())


def test_what_tells_cells_apart_is_in_their_names():
    modes = [cell("torch", "mlp", "infer", compile_mode=mode) for mode in ("eager", "compile")]
    assert names(*modes) == ["mlp (torch, infer, batch 128, eager)", "mlp (torch, infer, batch 128, compile)"]
    sizes = [cell("jax", "dblstm", "fit", parameters={"units": units}) for units in (16, 32)]
    assert names(*sizes) == ["dblstm (jax, fit, batch 128, units 16)", "dblstm (jax, fit, batch 128, units 32)"]


OWN = {"precision": "own", "feed": "own", "compile_mode": "own"}


def titled(*cells):
    return [" · ".join(title) for title in titles([cells])]


def test_a_program_that_takes_no_task_is_said_to_have_none():
    train = [cell("program", workload=name, **OWN) for name in ("a", "b")]
    infer = [cell("program", workload=name, task="infer", **OWN) for name in ("a", "b")]
    assert names(*train) == ["a (batch 128)", "b (batch 128)"]
    assert titled(*train) == ["programs"]
    assert names(*infer) == ["a (infer, batch 128)", "b (infer, batch 128)"]
    assert titled(*infer) == ["programs infer"]
    # Programs that take the task have both.
    assert names(train[0], infer[0]) == ["a (train, batch 128)", "a (infer, batch 128)"]
    assert [" · ".join(title) for title in titles([train, infer])] == ["programs train", "programs infer"]
    assert titled(cell("torch"), cell("jax")) == ["mlp train"]


@pytest.mark.parametrize(("is_default", "shown"), [(True, False), (False, True)])
def test_samples_a_second_are_shown_of_programs_whose_batch_somebody_gave(tmp_path, monkeypatch, is_default, shown):
    members = [b.member("program", ms, name, **OWN) for name, ms in (("a", 2.0), ("b", 3.0))]
    profile = b.profile(b.group("g", *members), rounds=3, compare=["workload"])
    profile.suite = replace(profile.suite, batch_is_default=is_default)
    b.write(tmp_path / "run.json", profile)
    monkeypatch.chdir(tmp_path)
    table = invoke("compare", "run.json").stdout
    assert table.splitlines()[3].split()[0] == "programs"
    assert ("samples/s" in table) == shown, table
    assert ("time/sample" in invoke("compare", "run.json", "--wide").stdout) == shown
