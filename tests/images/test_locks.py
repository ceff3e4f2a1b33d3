import re
import tomllib

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement

NAMES = ["kit", "tensorflow", "torch", "jax", "dev"]
PIN = re.compile(r"^([a-z0-9-]+)==(\S+?)( ; [^\\]+?)?( \\)?$")


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def lines_of(path):
    """The lines of a lock that name a package, not its hashes or comments."""
    return [line for line in path.read_text().splitlines() if line and not line.startswith((" ", "#"))]


def pins_of(path):
    return {match[1]: match[2] for line in lines_of(path) if (match := PIN.match(line))}


@pytest.fixture(scope="module")
def locks(root):
    return root / "images" / "cpu"


def asked_for(root, name):
    """Requirements that a lock must answer."""
    if name == "kit":
        metadata = tomllib.loads((root / "pyproject.toml").read_text())
        texts = metadata["project"]["dependencies"] + metadata["build-system"]["requires"]
    else:
        lines = (root / "images" / "cpu" / f"{name}.in").read_text().splitlines()
        texts = [line for line in lines if line and not line.startswith("#")]
    return [Requirement(text) for text in texts]


@pytest.mark.parametrize("name", NAMES)
def test_every_line_is_an_exact_pin(locks, name):
    lines = lines_of(locks / f"{name}.txt")
    assert lines
    assert [line for line in lines if not PIN.match(line)] == []


@pytest.mark.parametrize("name", NAMES)
def test_what_is_asked_for_is_pinned_within_its_bounds(root, locks, name):
    pins = pins_of(locks / f"{name}.txt")
    outside = [
        str(one)
        for one in asked_for(root, name)
        if canonical(one.name) not in pins or not one.specifier.contains(pins[canonical(one.name)])
    ]
    assert outside == [], "run make lock"


def test_a_package_has_one_version_in_all_of_them(locks):
    versions = {}
    for name in NAMES:
        for package, version in pins_of(locks / f"{name}.txt").items():
            versions.setdefault(package, set()).add(version)
    assert {package: found for package, found in versions.items() if len(found) > 1} == {}


@pytest.mark.parametrize("name", [name for name in NAMES if name != "torch"])
def test_every_pin_has_a_hash(locks, name):
    lines = lines_of(locks / f"{name}.txt")
    assert [line for line in lines if not line.endswith("\\")] == []


@pytest.mark.parametrize("name", NAMES)
def test_no_index_is_named(locks, name):
    assert not re.search(r"https?://|--(extra-)?index-url|--find-links", (locks / f"{name}.txt").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_no_gpu_runtime_is_locked_for_the_cpu(locks, name):
    # nvidia-ml-py is the driver library's Python binding: it reads power, and brings no runtime.
    pins = set(pins_of(locks / f"{name}.txt")) - {"nvidia-ml-py"}
    assert [pin for pin in pins if pin.startswith(("nvidia", "cuda", "triton", "rocm"))] == []


APART = [(target, name) for target in ("gpu", "tpu") for name in ("tensorflow", "torch", "jax")]


@pytest.mark.parametrize(("target", "name"), APART)
def test_an_environment_of_its_own_is_locked_with_hashes_and_what_a_worker_imports(root, target, name):
    folder = root / "images"
    text = (folder / target / f"{name}.txt").read_text()
    lines, pins = lines_of(folder / target / f"{name}.txt"), pins_of(folder / target / f"{name}.txt")
    assert [line for line in lines if not PIN.match(line)] == []
    assert (target, name) == ("tpu", "torch") or all(line.endswith("\\") for line in lines)  # a CPU build has none
    asked = (folder / target / f"{name}.in").read_text() + (folder / "worker.in").read_text()
    wanted = [Requirement(line) for line in asked.splitlines() if line and not line.startswith("#")]
    outside = [
        str(one)
        for one in wanted
        if canonical(one.name) not in pins or not one.specifier.contains(pins[canonical(one.name)])
    ]
    assert outside == [], "run make lock"
    assert not re.search(r"https?://|--(extra-)?index-url|--find-links", text)


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
@pytest.mark.parametrize(
    ("machine", "package"), [("x86_64", "tensorflow-cpu"), ("aarch64", "tensorflow"), ("arm64", "tensorflow")]
)
def test_exactly_one_tensorflow_is_chosen_everywhere(locks, python, machine, package):
    environment = {**default_environment(), "python_version": python, "platform_machine": machine}
    wanted = [Requirement(line.removesuffix(" \\")) for line in lines_of(locks / "tensorflow.txt")]
    chosen = [
        one.name
        for one in wanted
        if one.name.startswith("tensorflow") and (one.marker is None or one.marker.evaluate(environment))
    ]
    assert chosen == [package]
