"""Planted step times of one device and of two: efficiency and the share of the all-reduce come out."""

import profile_builder as b
import pytest

from kit.compare.compare import compare_within
from kit.environment import NO_ALL_REDUCE
from kit.profile.cell import Variant
from kit.profile.launch import Threads

VARIANTS = [Variant(name="default"), Variant(name="apart", env={NO_ALL_REDUCE: "1"})]


def threads(count):
    return {"threads": Threads(requested=count, reported=count, reason=None, cpus=list(range(count)))}


def rows(device="cpu", threads_of_two=2):
    """8 ms alone; the same batch on two in 5 ms, twice the batch in 10 ms, and 4 ms where nothing is averaged."""
    members = [
        b.member("torch", 8.0, batch=64, device=device, launch=threads(2)),
        b.member("torch", 5.0, batch=64, device=device, devices=2, launch=threads(threads_of_two)),
        b.member("torch", 10.0, batch=128, device=device, devices=2, launch=threads(threads_of_two)),
        b.member("torch", 4.0, batch=64, device=device, devices=2, variant="apart", launch=threads(threads_of_two)),
    ]
    built = b.profile(b.group("g", *members), rounds=8, variants=VARIANTS)
    (group,) = compare_within("p", built).groups
    return {(row.cell.devices, row.cell.batch, row.cell.variant): row for row in group.rows}


@pytest.mark.parametrize(
    ("device", "threads_of_two", "strong", "weak"),
    [
        ("cpu", 2, 1.6, 1.6),  # two ranks divide the CPUs that one device has: nothing was added
        ("cpu", 4, 0.8, 0.8),
        ("gpu", 2, 0.8, 0.8),
    ],
)
def test_efficiency_is_throughput_per_device_or_on_a_cpu_per_thread(device, threads_of_two, strong, weak):
    of = rows(device, threads_of_two)
    for place, planted in (((2, 64, "default"), strong), ((2, 128, "default"), weak)):
        efficiency = of[place].scaling.efficiency
        assert efficiency.value == pytest.approx(planted, rel=0.03)
        assert efficiency.low < planted < efficiency.high
    assert of[1, 64, "default"].scaling is None


def test_what_averages_nothing_is_no_fastest_and_no_other_variants_step():
    variants = [*VARIANTS, Variant(name="each", env={"KIT_PROCESS_EACH": "1"})]
    members = [
        b.member("torch", ms, batch=64, device="gpu", devices=devices, variant=variant)
        for ms, devices, variant in ((8.0, 1, "default"), (5.0, 2, "default"), (9.0, 2, "each"), (4.0, 2, "apart"))
    ]
    built = b.profile(b.group("g", *members), rounds=8, variants=variants, compare=["devices", "variant"])
    (group,) = compare_within("p", built).groups
    of = {(row.cell.devices, row.cell.variant): row for row in group.rows}
    assert of[2, "default"].scaling.all_reduce.value == pytest.approx(0.2, abs=0.02)
    assert of[2, "each"].scaling.all_reduce is None
    assert group.leaders is not None and group.leaders.tied == [of[2, "default"].name]


def test_the_share_of_the_all_reduce_is_what_is_gone_without_it():
    of = rows()
    share = of[2, 64, "default"].scaling.all_reduce
    assert share.low < 0.2 < share.high
    assert share.value == pytest.approx(0.2, abs=0.02)
    assert of[2, 128, "default"].scaling.all_reduce is None, "not measured at that batch"
    assert of[2, 64, "apart"].scaling.efficiency is None, "it learns nothing"


@pytest.mark.parametrize(
    ("backend", "device", "devices", "flags", "is_said"),
    [
        ("jax", "gpu", 2, "", True),
        ("jax", "gpu", 2, "--xla_gpu_enable_latency_hiding_scheduler=true", False),
        ("jax", "gpu", 1, "", False),
        ("jax", "cpu", 2, "", False),
        ("torch", "gpu", 2, "", False),
    ],
)
def test_what_overlaps_in_pytorch_and_not_by_xlas_default_is_said_beside_its_scaling(
    backend, device, devices, flags, is_said
):
    launch = {"environment": {"XLA_FLAGS": flags}} if flags else {}
    members = [
        b.member(backend, 8.0, batch=batch, device=device, devices=count, launch=launch)
        for count, batch in ((1, 64), (devices, 128))
    ]
    notes = compare_within("p", b.profile(b.group("g", *members), rounds=3)).notes
    assert [note.what.code for note in notes].count("all_reduce_not_hidden") == is_said
