import msgspec
import pytest
from profile_builder import MS, build_cell, build_identity, build_profile, build_result, six_cells
from test_differences import in_state, sampled

from kit.compare.why import explain
from kit.profile.identity import Container
from kit.profile.launch import Threads

HALF = Container(engine="docker", cpu_limit=0.5, memory_limit_b=None, image=None)


def why(first, second):
    return explain(("host", first), ("box", second))


def sentences(found, grade=None):
    return [reason.sentence for reason in found.reasons if grade in (None, reason.grade)]


def test_a_container_with_half_a_core():
    results = six_cells(medians_ms={"tensorflow": 16.0, "torch": 8.0, "jax": 8.0}, utilization=sampled(450 * MS))
    for result in results:
        result.launches[0].utilization = sampled(0)
    box = build_profile(results, id="run-2", identity=build_identity(container=HALF), created="2026-01-03T00:00:00Z")
    found = why(build_profile(six_cells()), box)
    assert found.apart == "box was taken 2 days after host, on the same host."
    assert found.numbers == ["A steady step takes 4 times as long in box as in host (6 cells: 6 slower)."]
    assert "host has no CPU limit; box may use 0.5 of its 4 CPUs." in sentences(found, "warns")
    assert (
        "In host none of 60 launches was throttled; in box 54 of 60 launches were throttled, "
        "their CPUs stopped for 0.5 s in every steady second." in sentences(found, "warns")
    )
    limit = next(reason for reason in found.reasons if reason.kind == "CPU limit")
    assert "steps stretch and scatter" in limit.effect


def test_a_power_cap_is_named_for_cells_that_computed_on_the_gpu():
    free, capped = sampled(None, []), sampled(None, ["software power cap of GPU 0"])
    on_gpu, on_cpu = build_cell(device="gpu"), build_cell("jax")
    first = build_profile([build_result(cell, [8e6] * 5, utilization=free) for cell in (on_gpu, on_cpu)])
    results = [build_result(cell, [16e6] * 5, utilization=capped) for cell in (on_gpu, on_cpu)]
    results[0].launches[0].utilization = free
    found = why(first, build_profile(results, id="run-2"))
    assert (
        "In host none of 5 launches was throttled; in box 4 of 5 launches were throttled, "
        "the GPU's clock lowered by software power cap of GPU 0 in 4 launches." in sentences(found, "warns")
    )


def test_what_blocks_is_explained_and_compared_all_the_same():
    one = Threads(requested=1, reported=1, reported_reason=None, cpus=[0])
    found = why(build_profile(six_cells()), build_profile(six_cells(threads=one), id="run-2"))
    assert sentences(found, "blocks") == ["host computed with 2 threads; box computed with 1 thread."]
    assert found.numbers[0].startswith("A steady step takes 1 times as long")
    assert found.numbers[1].startswith("The gate would keep apart mlp/tensorflow/")


def test_states_stand_side_by_side():
    busy = in_state({"load_1min": 3.0, "steal_ns": 0}, {"load_1min": 5.0, "steal_ns": 40 * 10**9})
    quiet = in_state({"load_1min": 0.2, "steal_ns": 0}, {"load_1min": 1.9, "steal_ns": 0})
    found = why(quiet, busy)
    lines = {line.name: line.values for line in found.states}
    assert lines["load, 1 minute"] == ["0.2 → 1.9", "3 → 5"]
    assert lines["CPU time stolen by the hypervisor"] == ["0 %", "10 %"]
    assert "temperature" not in lines
    assert "The load was 0.2 on 4 CPUs before host; the load was 3 on 4 CPUs before box." in sentences(found)
    assert (
        "During host the hypervisor took 0 % of all CPU time; during box the hypervisor took 10 % of all CPU time."
        in (sentences(found))
    )


def test_an_upgrade_is_told_by_its_versions():
    packages = {"torch": "2.1", "jax": "0.10", "tensorflow": "2.21"}
    found = why(build_profile(six_cells()), build_profile(six_cells(), identity=build_identity(packages=packages)))
    assert sentences(found, "warns") == ["torch: 2.0 in host, 2.1 in box."]


def test_profiles_without_a_common_cell_are_explained_too():
    second = build_profile(
        [build_result(build_cell("torch", batch=64), [MS, MS])], id="run-2", identity=build_identity("Other")
    )
    found = why(build_profile(six_cells()), second)
    assert found.numbers[0].startswith(
        "There is nothing to compare: no cell of host is in another profile: nearest, in"
    )
    assert any(sentence.startswith("CPU: Example CPU 9000, ") for sentence in sentences(found, "warns"))
    assert found.apart.endswith("on other hardware.")


def test_cells_without_a_number_are_named_with_the_reason():
    first, second = six_cells(), six_cells()
    second[0] = build_result(second[0].cell, [None, None])
    found = why(build_profile(first), build_profile(second))
    assert found.numbers[1] == f"Without a verdict: {second[0].key} (no steady number)."


@pytest.mark.parametrize(
    ("created", "words"),
    [
        ("2026-01-01T00:00:50Z", "50 seconds after"),
        ("2025-12-31T21:00:00Z", "3 hours before"),
        ("2026-01-01T01:30:00Z", "90 minutes after"),
        ("no time", "when is not known"),
    ],
)
def test_the_time_between(created, words):
    assert words in why(build_profile(six_cells()), build_profile(six_cells(), id="run-2", created=created)).apart


def test_the_same_run_is_told():
    profile = build_profile(six_cells())
    assert why(profile, profile).apart == "host and box are the same run."


def test_it_encodes():
    found = why(build_profile(six_cells()), build_profile(six_cells(), seed=1, id="run-2"))
    assert msgspec.json.decode(msgspec.json.encode(found))["reasons"][0]["values"] == {"0": ["host"], "1": ["box"]}
