"""The same cells on several machines and devices: what is a platform, a row and a blank, and whose joules they are."""

import math

import profile_builder as b
import pytest

from kit.compare.compare import compare
from kit.compare.notes import read_run
from kit.errors import KitError
from kit.fingerprint.fingerprint import hashed
from kit.profile.facts import Accelerator
from kit.profile.fields import reason
from kit.profile.schema import Skipped

TIMES_MS = {"tensorflow": 3.0, "torch": 2.0, "jax": 1.0}
BUS = "0000:1b:00"


def machine(model=None, kind="gpu", memory_b=8 << 30):
    """A machine with two boards of a model; without one none."""
    boards = [
        Accelerator(name=f"{kind} {index}", model=model or "", memory_b=80 << 30, device_id=bus)
        for index, bus in enumerate((BUS, "0000:af:00"))
    ]
    return hashed(b.identity(accelerators=boards if model else [], facts={"memory_b": memory_b}))


def profile(label, device="cpu", speed=1.0, *, times_ms=TIMES_MS, identity=None, change=None, **more):
    """mlp training; the frameworks take 3, 2 and 1 ms over `speed`."""
    created = more.pop("created", b.CREATED)
    cell = {"device": device, "change": change, "sd": 0.003} | more
    members = [b.member(name, ms / speed, **cell) for name, ms in times_ms.items()]
    plan = b.group(f"mlp/*/{device}/train", *members)
    return b.profile(plan, id=label, identity=identity or machine(), rounds=4, created=created)


def compared(*profiles, **more):
    return compare([read_run(each.id, each) for each in profiles], **more)


def names(comparison):
    return [head.label for head in comparison.headlines]


def rows_of(comparison):
    return {(row.member, row.side.partition(" · ")[0]): row for group in comparison.groups for row in group.rows}


H100 = {"device": "gpu", "speed": 30.0, "identity": machine("NVIDIA H100 80GB HBM3")}
TPU = {"device": "tpu", "speed": 20.0, "identity": machine("TPU v5e", "tpu"), "times_ms": {"torch": 2.0, "jax": 1.0}}


def test_each_question_is_a_row_and_each_machine_and_device_a_column():
    comparison = compared(profile("here"), profile("there", **H100), profile("far", **TPU))
    assert comparison.kind == "platforms" and len(comparison.groups) == 1
    assert names(comparison) == ["cpu · Example 9000", "gpu · H100 80GB HBM3", "tpu · TPU v5e"]
    rows = rows_of(comparison)
    for member in TIMES_MS:
        versus = rows[member, "gpu"].versus
        assert versus.verdict == "faster" and versus.low < 1 / 30 < versus.high
    assert rows["jax", "cpu"].is_baseline and ("tensorflow", "tpu") not in rows
    assert [missing.member for missing in comparison.groups[0].missing] == ["tensorflow"]


def test_runs_of_equal_hardware_are_one_platform_and_three_sessions_measure_its_spread():
    days = [{"speed": math.exp(0.01 * n), "created": f"2026-11-0{n + 1}T00:00:00+00:00"} for n in range(3)]
    gpus = [profile(f"gpu{n}", **H100 | day | {"speed": 30 * day["speed"]}) for n, day in enumerate(days)]
    mixed, daily = compared(profile("here"), *gpus), compared(*(profile(f"cpu{n}", **days[n]) for n in range(3)), *gpus)
    assert [head.profiles for head in mixed.headlines] == [1, 3]
    assert [rows_of(each)["jax", "gpu"].versus.is_spread_assumed for each in (mixed, daily)] == [True, False]
    assert not any(note.what.code.startswith("spread_assumed") for note in daily.notes)


def test_platforms_of_one_name_are_distinguished_by_their_profiles():
    others = [profile(name, identity=machine(memory_b=size << 30)) for name, size in (("small", 2), ("large", 64))]
    assert names(compared(*others)) == ["cpu · Example 9000 (small)", "cpu · Example 9000 (large)"]
    with pytest.raises(KitError, match="'cpu' names 2 platforms"):
        compared(*others, baseline="cpu")
    # Another software is another side, and is never averaged.
    gpus = [
        profile(f"torch{n}", **H100 | {"identity": b.changed(H100["identity"], {"software.package.torch": f"2.{n}"})})
        for n in (4, 6)
    ]
    expected = ["gpu · H100 80GB HBM3 (torch4)", "gpu · H100 80GB HBM3 (torch6)"]
    assert names(compared(profile("here"), *gpus))[1:] == expected


def test_what_a_platform_lacks_says_why():
    why = reason("not_installed", backend="jax")
    lacking = profile("there", **H100 | {"times_ms": {"tensorflow": 3.0}})
    lacking.suite.skipped.append(Skipped(backend="jax", reason=why))
    other = b.profile(b.group("mlp/*/gpu/train/tf32", b.member("torch", 0.1, device="gpu", precision="tf32")))
    lacking.cells.extend(other.cells)
    lacking.groups.extend(other.groups)
    missing = {each.member: each.reason for each in compared(profile("here"), lacking).groups[0].missing}
    assert missing["jax"] == why
    assert (missing["torch"].code, missing["torch"].values["value"]) == ("measured_otherwise", "tf32")


def test_the_fastest_of_a_platform_is_named_where_each_of_its_runs_shows_it():
    first, gpu = profile("a"), profile("there", **H100)
    second = profile("b", times_ms={"tensorflow": 3.0, "torch": 1.0, "jax": 2.0})
    assert [best.fastest for best in compared(first, gpu).groups[0].best] == [["jax"], ["jax"]]
    assert [best.fastest for best in compared(first, second, gpu).groups[0].best] == [[], ["jax"]]


def test_joules_of_one_kind_of_sensor_have_no_note_and_of_a_model_and_a_counter_have_one():
    def by(tier):
        return lambda launch: launch.energy.extend(b.energy(2.0, tier=tier))

    here, elsewhere = profile("here", change=by("device_counter")), {"identity": machine(memory_b=64 << 30)}
    for tier, codes in (("device_counter", []), ("modelled", ["joules_of_several_sensors"])):
        comparison = compared(here, profile("there", change=by(tier), **elsewhere))
        assert [note.what.code for note in comparison.notes if note.what.code.startswith("joules_of")] == codes


def test_a_run_notes_the_boards_that_it_left_idle():
    idle = read_run("idle", profile("idle", identity=H100["identity"]))
    notes = [note.what.values["model"] for note in idle.notes if note.what.code == "device_idle"]
    assert notes == ["NVIDIA H100 80GB HBM3"]
