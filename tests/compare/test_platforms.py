import io
import math

import profile_builder as b
import pytest

from kit.compare.comparability import NotComparableError
from kit.compare.compare import compare_runs, reduce_run
from kit.errors import KitError
from kit.fingerprint.identity import hashed
from kit.profile.identity import Accelerator
from kit.profile.reason import reason
from kit.profile.schema import Skipped
from kit.report.comparison import comparison_report
from kit.report.formats.text import write

FRAMEWORKS = ("tensorflow", "torch", "jax")
TITLES = {"tensorflow": "TensorFlow", "torch": "PyTorch", "jax": "JAX"}


def machine(model=None, kind="gpu", bus="0000:1b:00", memory_b=8 << 30):
    """A machine with two boards of a model; without one none."""
    boards = [
        Accelerator(
            name=f"{kind} {index}", model=model or "", memory_b=80 << 30, driver="1", uuid_sha256=place, device_id=place
        )
        for index, place in enumerate((bus, "0000:af:00"))
    ]
    return hashed(b.identity(accelerators=boards if model else [], facts={"memory_b": memory_b}))


def profile(
    label, device="cpu", speed=1.0, frameworks=FRAMEWORKS, *, identity=None, change=None, skipped=(),
    created=b.CREATED, **more,
):  # fmt: skip
    """mlp training; the frameworks take 3, 2 and 1 ms over `speed`."""
    times_ms = dict(zip(FRAMEWORKS, (3.0, 2.0, 1.0), strict=True))
    cell = {"device": device} | more
    members = [b.member(name, times_ms[name] / speed, sd=0.003, change=change, **cell) for name in frameworks]
    made = b.profile(b.group(f"mlp/*/{device}/train", *members), id=label, identity=identity or machine(), rounds=4)
    made.created = created
    made.suite.skipped.extend(skipped)
    return made


def compared(*profiles, **more):
    return compare_runs([reduce_run(each.id, each) for each in profiles], **more)


def text(comparison):
    class Stream:
        def isatty(self):
            return False

    return write(comparison_report(comparison, TITLES), Stream())


H100 = {"device": "gpu", "speed": 30.0, "identity": machine("NVIDIA H100 80GB HBM3")}
TPU = {"device": "tpu", "speed": 20.0, "identity": machine("TPU v5e", "tpu"), "frameworks": ("torch", "jax")}


def rows_of(comparison):
    return {(row.member, row.side.partition(" · ")[0]): row for group in comparison.groups for row in group.rows}


def test_what_was_asked_is_a_row_and_each_machine_and_device_a_column():
    comparison = compared(profile("here"), profile("there", **H100), profile("far", **TPU))
    assert comparison.kind == "platforms" and len(comparison.groups) == 1
    assert [head.label for head in comparison.headlines] == [
        "cpu · Example 9000",
        "gpu · H100 80GB HBM3",
        "tpu · TPU v5e",
    ]
    rows = rows_of(comparison)
    for member in FRAMEWORKS:
        versus = rows[member, "gpu"].versus
        assert versus.verdict == "faster" and versus.low < 1 / 30 < versus.high
    assert rows["jax", "cpu"].is_baseline and ("tensorflow", "tpu") not in rows
    assert [missing.member for missing in comparison.groups[0].missing] == ["tensorflow"]
    shown = text(comparison)
    assert "JAX is the fastest on cpu, gpu and tpu; comparing the fastest of each, gpu is 30" in shown
    assert all(len(line) <= 100 for line in shown.splitlines())
    # Fastest first, by the baseline.
    assert [line.split()[0] for line in shown.splitlines() if line.startswith("  ") and "× faster" in line][:3] == [
        "jax",
        "torch",
        "tensorflow",
    ]


def test_runs_of_equal_hardware_are_one_platform_and_three_sessions_measure_its_spread():
    days = [{"created": f"2026-11-0{n + 1}T00:00:00+00:00"} for n in range(3)]
    gpus = [profile(f"gpu{n}", **H100 | {"speed": 30 * math.exp(0.01 * n)} | days[n]) for n in range(3)]
    comparison = compared(profile("here"), *gpus)
    assert [head.profiles for head in comparison.headlines] == [1, 3]
    assert rows_of(comparison)["jax", "gpu"].versus.is_spread_assumed
    both = compared(*(profile(f"cpu{n}", speed=math.exp(0.01 * n), **days[n]) for n in range(3)), *gpus)
    assert not rows_of(both)["jax", "gpu"].versus.is_spread_assumed
    assert not any(note.what.code.startswith("spread_assumed") for note in both.notes)


def test_devices_of_one_profile_are_platforms():
    here, there = profile("both", identity=machine("NVIDIA H100 80GB HBM3")), profile("both", **H100)
    here.cells.extend(there.cells)
    here.groups.extend(there.groups)
    comparison = compared(here)
    assert [head.label for head in comparison.headlines] == ["cpu · Example 9000", "gpu · H100 80GB HBM3"]
    assert compared(here, baseline="gpu").headlines[0].label == "gpu · H100 80GB HBM3"
    with pytest.raises(KitError, match=r"tpu.*choose from cpu · Example 9000, gpu"):
        compared(here, baseline="tpu")


def test_two_platforms_of_one_name_are_told_apart_by_their_profiles():
    others = [profile(name, identity=machine(memory_b=size << 30)) for name, size in (("small", 2), ("large", 64))]
    comparison = compared(*others)
    assert [head.label for head in comparison.headlines] == ["cpu · Example 9000 (small)", "cpu · Example 9000 (large)"]
    with pytest.raises(KitError, match="'cpu' names 2 platforms"):
        compared(*others, baseline="cpu")


def test_what_a_platform_lacks_says_why_in_its_place():
    why = reason("not_installed", backend="jax")
    lacking = profile(
        "there",
        skipped=[Skipped(backend="jax", reason=why)],
        **H100 | {"frameworks": ("tensorflow",)},
    )
    other = b.profile(b.group("mlp/*/gpu/train/tf32", b.member("torch", 0.1, device="gpu", precision="tf32")))
    lacking.cells.extend(other.cells)
    lacking.groups.extend(other.groups)
    missing = {each.member: each.reason for each in compared(profile("here"), lacking).groups[0].missing}
    assert missing["jax"] == why
    assert (missing["torch"].code, missing["torch"].values["value"]) == ("measured_otherwise", "tf32")
    assert "– a  jax is not installed" in text(compared(profile("here"), lacking))


def test_a_cell_that_failed_on_a_platform_says_so_there():
    failing = profile("there", **H100)
    for launch in failing.cells[0].launches:
        launch.failure = b.Failure(phase="build", reason=reason("exception", type="Error", message="no kernel"))
    shown = text(compared(profile("here"), failing))
    assert "failed: Error: no kernel" in shown


def test_other_data_are_not_compared_and_named_above():
    other = profile(
        "there",
        **H100,
        change=lambda launch: setattr(launch, "data", b.DataUsed(name="mnist", sha256="f" * 64, pool_batches=16)),
    )
    with pytest.raises(NotComparableError, match="data"):
        compared(profile("here"), other)
    forced = compared(profile("here"), other, force=True)
    assert all(row.blocked for row in forced.groups[0].rows if not row.is_baseline)
    explained = compared(profile("here"), other, explain=True)
    assert all(row.versus is None for row in explained.groups[0].rows if not row.is_baseline)


def test_without_a_common_question_the_axis_is_named_and_what_would_make_one():
    with pytest.raises(NotComparableError, match=r"batch 128 in cpu · .*, 64 in gpu · .*; measure .* with --batch 128"):
        compared(profile("here"), profile("there", batch=64, **H100))


def test_headlines_name_the_boards_that_were_used_and_notes_those_that_were_not():
    used = profile("there", **H100, change=lambda launch: launch.device_ids.append("0000:1b:00"))
    (device,) = compared(profile("here"), used).headlines[1].devices
    assert (device.model, device.device_ids, device.used, device.present) == (
        "NVIDIA H100 80GB HBM3",
        ["0000:1b:00"],
        1,
        2,
    )
    assert "NVIDIA H100 80GB HBM3 (bus 0000:1b:00, 1 of 2)" in text(compared(profile("here"), used))
    idle = reduce_run("idle", profile("idle", identity=machine("NVIDIA H100 80GB HBM3")))
    assert [note.what.values["model"] for note in idle.notes if note.what.code == "device_idle"] == [
        "NVIDIA H100 80GB HBM3"
    ]


def test_the_fastest_of_a_platform_is_named_where_each_of_its_runs_shows_it():
    def turned(label, order):
        times_ms = dict(zip(order, (1.0, 2.0, 3.0), strict=True))
        members = [b.member(name, times_ms[name], sd=0.003) for name in FRAMEWORKS]
        return b.profile(b.group("mlp/*/cpu/train", *members), id=label, identity=machine(), rounds=4)

    first, second = turned("a", ("jax", "torch", "tensorflow")), turned("b", ("torch", "jax", "tensorflow"))
    gpu = profile("there", **H100)
    assert [best.fastest for best in compared(first, gpu).groups[0].best] == [["jax"], ["jax"]]
    assert [best.fastest for best in compared(first, second, gpu).groups[0].best] == [[], ["jax"]]


def test_another_software_is_another_side_and_never_averaged():
    gpus = [
        profile(
            f"torch{n}",
            **H100
            | {
                "speed": speed,
                "identity": b.changed(H100["identity"], {"software.package.torch": f"2.{n}"}),
            },
        )
        for n, speed in ((4, 30.0), (6, 60.0))
    ]
    comparison = compared(profile("here"), *gpus)
    names = [head.label for head in comparison.headlines]
    assert names[1:] == ["gpu · H100 80GB HBM3 (torch4)", "gpu · H100 80GB HBM3 (torch6)"]
    assert [head.profiles for head in comparison.headlines] == [1, 1, 1]


def test_joules_of_two_kinds_of_device_say_whose_they_are():
    def joules(launch):
        launch.energy.append(b.Energy(sensor="rapl.package-0", joules_j=2.0, window_ns=b.S, samples=1000, block_ns=b.S))

    def of_board(launch):
        launch.energy.append(b.Energy(sensor="nvml.0.energy", joules_j=1.0, window_ns=b.S, samples=1000, block_ns=b.S))

    comparison = compared(profile("here", change=joules), profile("there", **H100, change=of_board))
    notes = {note.what.code: note.what for note in comparison.notes}
    assert "joules_of_the_device" in notes
    # Their gain errors are in no interval.
    assert notes["joules_of_boards_and_others"].values == {"sensors": "rapl, nvml", "low_pct": -8, "high_pct": 13}
    assert "-8 to +13 % for GPUs" in " ".join(text(comparison).split())
    assert "J/1k" in text(comparison)


def test_joules_of_one_kind_of_sensor_have_no_note_and_of_a_model_and_a_counter_have_one():
    def by(tier):
        def change(launch):
            more = {"window_ns": b.S, "samples": 1000, "block_ns": b.S, "tier": tier}
            launch.energy.append(b.Energy(sensor="rapl.package-0", joules_j=2.0, **more))

        return change

    counted = profile("here", change=by("device_counter"))
    elsewhere = {"identity": machine(memory_b=64 << 30)}
    for tier, codes in (("device_counter", []), ("modelled", ["joules_of_several_sensors"])):
        comparison = compared(counted, profile("there", change=by(tier), **elsewhere))
        assert [note.what.code for note in comparison.notes if note.what.code.startswith("joules_of")] == codes


def test_letters_in_the_wide_table_are_explained():
    here = profile("here", change=lambda launch: setattr(launch, "process", "one"))
    shown = write(comparison_report(compared(here, profile("there", **H100)), TITLES, wide=True), io.StringIO())
    assert "iB* " in shown and "\n*  peak of a process that several cells shared" in shown
