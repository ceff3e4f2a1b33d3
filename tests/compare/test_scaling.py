"""Planted step times of one device and of two: efficiency and the share of the all-reduce come out."""

import profile_builder as b
import pytest

from kit.compare.compare import compare_within
from kit.environment import NO_ALL_REDUCE
from kit.profile.cell import Variant
from kit.profile.schema import Threads

VARIANTS = [
    Variant(name="default"),
    Variant(name="apart", env={NO_ALL_REDUCE: "1"}),
    Variant(name="each", env={"KIT_PROCESS_EACH": "1"}),
]


def scaled(device="cpu", threads_of_two=2, change=None):
    """8 ms alone; the same batch on two in 5 ms, twice the batch in 10 ms, and 4 ms where nothing is averaged."""
    planted = ((8.0, 64, 1, "default"), (5.0, 64, 2, "default"), (10.0, 128, 2, "default"), (4.0, 64, 2, "apart"))
    members = []
    for ms, batch, devices, variant in (*planted, (9.0, 64, 2, "each")):
        count = 2 if devices == 1 else threads_of_two
        threads = Threads(requested=count, reported=count, reason=None, cpus=list(range(count)))
        more = {
            "device": device,
            "devices": devices,
            "variant": variant,
            "launch": {"threads": threads},
            "change": change,
        }
        members.append(b.member("torch", ms, batch=batch, **more))
    built = b.profile(b.group("g", *members), rounds=8, variants=VARIANTS, compare=["devices", "batch", "variant"])
    (group,) = compare_within("p", built).groups
    return group, {(row.cell.devices, row.cell.batch, row.cell.variant): row.scaling for row in group.rows}


@pytest.mark.parametrize(
    ("device", "threads_of_two", "planted"),
    [
        ("cpu", 2, 1.6),  # two ranks divide the CPUs that one device has: nothing was added
        ("cpu", 4, 0.8),
        ("gpu", 2, 0.8),
    ],
)
def test_efficiency_is_throughput_per_device_or_on_a_cpu_per_thread(device, threads_of_two, planted):
    _, scaling = scaled(device, threads_of_two)
    for batch in (64, 128):
        efficiency = scaling[2, batch, "default"].efficiency
        assert efficiency.value == pytest.approx(planted, rel=0.03)
        assert efficiency.low < planted < efficiency.high
    assert scaling[1, 64, "default"] is None


def test_no_efficiency_is_given_beside_other_programs_that_disturbed_every_cycle():
    group, scaling = scaled("cpu", 4, change=b.beside_others(0.48))
    assert all(row.versus.contention_pct is not None for row in group.rows if not row.is_baseline)
    assert scaling[2, 64, "default"].efficiency is None
    assert scaling[2, 64, "default"].all_reduce is None


def test_the_share_of_the_all_reduce_is_what_is_gone_without_it():
    group, scaling = scaled("gpu")
    share = scaling[2, 64, "default"].all_reduce
    assert share.low < 0.2 < share.high and share.value == pytest.approx(0.2, abs=0.02)
    assert scaling[2, 128, "default"].all_reduce is None, "not measured at that batch"
    assert scaling[2, 64, "each"].all_reduce is None, "another variant's step"
    assert scaling[2, 64, "apart"].efficiency is None, "it learns nothing"
    assert "apart" not in " ".join(group.leaders.tied), "nor is it the fastest"


@pytest.mark.parametrize(("backend", "device", "is_said"), [("jax", "gpu", 1), ("jax", "cpu", 0), ("torch", "gpu", 0)])
def test_what_overlaps_in_pytorch_and_not_by_xlas_default_is_said_beside_its_scaling(backend, device, is_said):
    members = [b.member(backend, 8.0, batch=64 * count, device=device, devices=count) for count in (1, 2)]
    notes = compare_within("p", b.profile(b.group("g", *members), rounds=3)).notes
    assert [note.what.code for note in notes].count("all_reduce_not_hidden") == is_said
