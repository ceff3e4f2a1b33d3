"""The lock files answer what is asked for; pip itself checks their form and their hashes."""

import re
import tomllib

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CPU = ["kit", "tensorflow", "torch", "jax", "dev"]
LOCKS = [("cpu", name) for name in CPU]
LOCKS += [(target, name) for target in ("gpu", "tpu") for name in ("tensorflow", "torch", "jax")]
PIN = re.compile(r"^([a-z0-9-]+)==([^\s;]+)", re.MULTILINE)


def requirements(text):
    return [Requirement(line) for line in text.splitlines() if line and not line.startswith("#")]


def asked_for(root, target, name):
    """Requirements that a lock must answer."""
    if name == "kit":
        metadata = tomllib.loads((root / "pyproject.toml").read_text())
        return [*map(Requirement, metadata["project"]["dependencies"] + metadata["build-system"]["requires"])]
    asked = requirements((root / "images" / target / f"{name}.in").read_text())
    # A framework in an environment of its own has what a worker imports beside it.
    return asked if target == "cpu" else asked + requirements((root / "images" / "worker.in").read_text())


def pins_of(root, target, name):
    return dict(PIN.findall((root / "images" / target / f"{name}.txt").read_text()))


@pytest.mark.parametrize(("target", "name"), LOCKS)
def test_what_is_asked_for_is_pinned_within_its_bounds(root, target, name):
    pins = pins_of(root, target, name)
    outside = [
        str(asked)
        for asked in asked_for(root, target, name)
        if not (pinned := pins.get(canonicalize_name(asked.name))) or not asked.specifier.contains(pinned)
    ]
    assert outside == [], "run make lock"


def test_a_package_has_one_version_in_all_locks_of_an_environment(root):
    versions = {}
    for name in CPU:
        for package, version in pins_of(root, "cpu", name).items():
            versions.setdefault(package, set()).add(version)
    assert {package: several for package, several in versions.items() if len(several) > 1} == {}


@pytest.mark.parametrize(
    ("machine", "package"), [("x86_64", "tensorflow-cpu"), ("aarch64", "tensorflow"), ("arm64", "tensorflow")]
)
def test_exactly_one_tensorflow_is_chosen_everywhere(root, machine, package):
    lines = (root / "images" / "cpu" / "tensorflow.txt").read_text().splitlines()
    pins = [Requirement(line.removesuffix(" \\")) for line in lines if line.startswith("tensorflow")]
    environment = {**default_environment(), "platform_machine": machine}
    chosen = [pin.name for pin in pins if pin.marker is None or pin.marker.evaluate(environment)]
    assert chosen == [package]
