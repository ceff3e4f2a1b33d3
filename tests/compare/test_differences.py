import msgspec
import pytest
from profile_builder import build_identity, build_profile, six_cells

from kit.compare.comparison import compare
from kit.compare.differences import machines
from kit.fingerprint.identity import hashed
from kit.profile.hardware import same_hardware
from kit.profile.identity import Accelerator, AcceleratorState, Container
from kit.profile.launch import Utilization
from kit.profile.schema import StateSpan

REPLACE = msgspec.structs.replace


def graded(first, second):
    """Name -> (grade, values) of what differs."""
    found = compare([("a", first), ("b", second)]).differences
    return {one.name: (one.grade, one.values) for one in found}


def on(**fields):
    return build_profile(six_cells(), id="run-2", identity=build_identity(**fields))


def in_state(before=None, after=None, results=None):
    profile = build_profile(results or six_cells(), id="run-2")
    moments = {"taken": "2026-01-01T00:00:00Z"}, {"taken": "2026-01-01T00:01:40Z"}
    span = StateSpan(
        before=REPLACE(profile.state.before, **(moments[0] | (before or {}))),
        after=REPLACE(profile.state.after, **(moments[1] | (after or {}))),
    )
    profile.state = span
    return profile


def sampled(throttled_ns, gpu_throttled_by=None):
    nothing = {"process_cpu_pct": 1.0, "machine_cpu_pct": 1.0, "rss_peak_b": 1, "frequency_mhz": None}
    return Utilization(
        **nothing, throttled_ns=throttled_ns, gpu_throttled_by=gpu_throttled_by, samples=9, sampler_cpu_pct=0.5
    )


def test_nothing_differs_between_like_runs():
    assert graded(build_profile(six_cells()), build_profile(six_cells(), id="run-2")) == {}


def test_limits_of_a_container_warn():
    limited = Container(engine="docker", cpu_limit=0.5, memory_limit_b=2 << 30, image="kit:1")
    found = graded(build_profile(six_cells()), on(container=limited))
    assert found == {
        "CPU limit": ("warns", {"none": ["a"], "0.5 CPUs": ["b"]}),
        "memory limit": ("warns", {"none": ["a"], "2.0 GiB": ["b"]}),
        "container": ("warns", {"none": ["a"], "docker": ["b"]}),
        "container image": ("noted", {"none": ["a"], "kit:1": ["b"]}),
    }


def test_gravest_first():
    found = compare([("a", build_profile(six_cells())), ("b", build_profile(six_cells(), seed=1, id="x"))]).differences
    assert [one.grade for one in found] == ["noted"]
    both = compare(
        [("a", build_profile(six_cells())), ("b", build_profile(six_cells(planted_slowdown_pct=2.0), seed=1))],
        force=True,
    ).differences
    assert [(one.grade, one.kind) for one in both] == [("blocks", "planted slow-down"), ("noted", "seed")]
    assert both[0].values == {"none": ["a"], "2 %": ["b"]}


def test_a_framework_that_no_compared_cell_runs_is_only_noted():
    packages = {"torch": "2.1", "jax": "0.10", "tensorflow": "2.21"}
    torch_alone = [result for result in six_cells() if result.cell.backend == "torch"]
    other = build_profile(torch_alone, id="run-2", identity=build_identity(packages=packages | {"jax": "0.11"}))
    found = graded(build_profile(torch_alone), other)
    assert found == {
        "torch": ("warns", {"2.0": ["a"], "2.1": ["b"]}),
        "jax": ("noted", {"0.10": ["a"], "0.11": ["b"]}),
    }


def test_an_accelerator_is_named_with_its_driver():
    def gpu(driver):
        return Accelerator(kind="gpu", model="Example GPU", memory_b=80 << 30, driver=driver, uuid_sha256=None)

    found = graded(on(accelerators=[gpu("550.1")]), on(accelerators=[gpu("560.2")]))
    assert found == {"driver of gpu 0": ("warns", {"550.1": ["a"], "560.2": ["b"]})}
    assert graded(build_profile(six_cells()), on(accelerators=[gpu("550.1")]))["gpu 0"] == (
        "warns",
        {"none": ["a"], "Example GPU, 80.0 GiB": ["b"]},
    )


@pytest.mark.parametrize(
    ("name", "quiet", "busy", "value"),
    [
        ("load before", ({"load_1min": 0.2}, {}), ({"load_1min": 2.0}, {}), "2"),
        ("temperature before", ({"temperature_c": 40.0}, {}), ({"temperature_c": 80.0}, {}), "80 °C"),
        ("CPU frequency before", ({"frequency_mhz": 3500.0}, {}), ({"frequency_mhz": 2000.0}, {}), "2000 MHz"),
        # Of 100 s on four CPUs.
        ("CPU time stolen", ({"steal_ns": 0}, {"steal_ns": 0}), ({"steal_ns": 0}, {"steal_ns": 40 * 10**9}), "10.0 %"),
        (
            "waiting for CPUs",
            ({"pressure_cpu_some_ns": 5}, {"pressure_cpu_some_ns": 5}),
            ({"pressure_cpu_some_ns": 0}, {"pressure_cpu_some_ns": 60 * 10**9}),
            "60 % of the time",
        ),
    ],
)
def test_a_state_that_could_explain_a_difference_warns(name, quiet, busy, value):
    found = graded(in_state(*quiet), in_state(*busy))
    assert found[name][0] == "warns"
    assert found[name][1][value] == ["b"]
    assert name not in graded(in_state(*quiet), in_state(*quiet))


def test_a_state_that_varies_as_it_always_does_is_no_difference():
    assert graded(in_state({"load_1min": 0.2}), in_state({"load_1min": 0.6})) == {}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"steal_ns": 10**9}, {"steal_ns": 0}),  # counters begin anew with the machine
        ({"steal_ns": 0}, {"steal_ns": None}),
        ({"steal_ns": 0, "taken": "yesterday"}, {"steal_ns": 10**12}),
        ({"steal_ns": 0, "taken": "2026-01-01T00:00:00"}, {"steal_ns": 10**12, "taken": "2025-01-01T00:00:00Z"}),
    ],
)
def test_a_counter_without_a_span_says_nothing(before, after):
    quiet = in_state({"steal_ns": 0}, {"steal_ns": 0})
    assert "CPU time stolen" not in graded(quiet, in_state(before, after))


def capped(power_cap_w, clock_limit_mhz=1980.0):
    gpu = AcceleratorState(
        name="gpu 0",
        power_cap_w=power_cap_w,
        power_cap_default_w=700.0,
        clock_limit_mhz=clock_limit_mhz,
        clock_mhz=345.0,
        temperature_c=40.0,
    )
    return in_state({"accelerators": [gpu]})


def test_a_forgotten_power_cap_warns():
    assert graded(capped(700.0), capped(230.0)) == {
        "power cap of gpu 0": ("warns", {"700 W": ["a"], "230 W (by default 700 W)": ["b"]})
    }
    assert graded(capped(700.0), capped(700.0, 1200.0)) == {
        "clock limit of gpu 0": ("warns", {"1980 MHz": ["a"], "1200 MHz": ["b"]})
    }
    assert graded(capped(700.0), in_state()) == {}, "an older profile did not look"


def test_a_sensor_that_answers_on_one_machine_only_is_noted():
    metal = build_profile(six_cells(), id="run-2")
    metal.sensors = [REPLACE(metal.sensors[0], status="measured", reason=None), metal.sensors[1]]
    assert graded(build_profile(six_cells()), metal) == {
        "sensor rapl.package-0": ("noted", {"unavailable": ["a"], "measured": ["b"]})
    }


def test_one_throttled_launch_warns():
    results = six_cells()
    results[0].launches[3].utilization = sampled(5)
    found = graded(build_profile(six_cells()), build_profile(results, id="run-2"))
    assert found == {"throttled launches": ("warns", {"0 of 60": ["a"], "1 of 60": ["b"]})}


def test_of_many_profiles_a_few_values_and_names_are_said():
    profiles = [
        (f"p{n}", build_profile(six_cells(launches=2), id=f"run-{n}", identity=build_identity(kernel=f"6.{n % 20}")))
        for n in range(40)
    ]
    comparison = compare(profiles)
    (note,) = (note for note in comparison.notes if "kernel" in note)
    assert note.startswith("Could explain a difference: kernel: 6.0 (p0, p20), 6.1 (p1, p21), ")
    assert note.endswith("6.5 (p5, p25) and 14 more.")
    (kernel,) = (one for one in comparison.differences if one.kind == "kernel")
    assert sum(map(len, kernel.values.values())) == 40


def test_containers_of_one_machine_are_one_machine():
    """Each draws a host name of its own."""
    docker = Container(engine="docker", cpu_limit=None, memory_limit_b=None, image=None)
    inside = [on(container=docker, hostname_sha256=letter * 64) for letter in "ab"]
    outside = [on(hostname_sha256=letter * 64) for letter in "ab"]
    assert machines([("a", inside[0]), ("b", inside[1])]) == 1
    assert machines([("a", inside[0]), ("b", outside[0])]) == 1
    assert machines([("a", outside[0]), ("b", outside[1])]) == 2
    assert machines([("a", outside[0]), ("b", on(cpu_model="Other"))]) == 2


def test_an_update_of_kernel_and_microcode_leaves_the_hardware_what_it_is():
    """Threads still block, and the band is still the host's."""
    before = hashed(build_identity())
    after = hashed(REPLACE(before, memory_b=before.memory_b - 44 * 1024, cpu=REPLACE(before.cpu, microcode="0x2")))
    assert same_hardware(before, after)
    assert after.hardware_sha256 == before.hardware_sha256
    more = hashed(REPLACE(before, memory_b=2 * before.memory_b))
    assert not same_hardware(before, more)
    # Of a profile whose hash was made by another rule.
    assert same_hardware(REPLACE(before, hardware_sha256="old"), after)


def test_what_one_profile_did_not_record_is_unknown_and_not_none():
    quiet, waiting, resumed = (in_state(after={"pressure_cpu_some_ns": ns}) for ns in (0, 90_000_000_000, None))
    for profile in (quiet, waiting):
        profile.state = REPLACE(profile.state, before=REPLACE(profile.state.before, pressure_cpu_some_ns=0))
    found = compare([("a", quiet), ("b", waiting), ("c", resumed)]).differences
    values = next(one.values for one in found if one.kind == "waiting for CPUs")
    assert values == {"0 % of the time": ["a"], "90 % of the time": ["b"], "unknown": ["c"]}
