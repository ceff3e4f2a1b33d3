"""Whether a run may go on here: launches of two machines, or of two kits, are not one measurement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from kit.errors import KitError
from kit.fingerprint.software import kit_revision
from kit.profile.identity import STATE_COUNTERS
from kit.profile.program import file_sha256
from kit.profile.reason import reason
from kit.profile.unfinished import RunPlan
from kit.runner.prepare import identify, with_digests
from kit.suites.suite import load_suite
from kit.version import __version__

# Hashes say that something differs; the fields under them say what.
HASHES = frozenset({"sha256", "hardware_sha256"})


def check_resumable(plan: RunPlan, cpus: list[int]) -> None:
    """Compare what the run was begun on with what is here. Takes about a second.

    Raises:
        KitError: naming what differs.
    """
    for what, begun_on, here_now in (
        ("the kit", plan.kit.version, __version__),
        ("the kit's revision", plan.kit.revision, kit_revision()),
    ):
        if begun_on != here_now:
            raise _differs(what, begun_on, here_now)
    for name, source in plan.suite.programs.items():
        if (sha256 := file_sha256(source.path)) != source.sha256:
            raise _differs(f"{source.path} of program {name}", source.sha256, sha256)
    for variant, present in zip(plan.suite.variants, with_digests(plan.suite.variants), strict=True):
        if variant.image_digest != present.image_digest:
            raise _differs(
                f"image {variant.image} of variant {variant.name}", variant.image_digest, present.image_digest
            )
    if plan.cpus != cpus:
        raise _differs("usable CPUs", plan.cpus, cpus)
    here = identify(list(dict.fromkeys(cell.backend for cell in plan.cells)), plan.suite.variants)
    # A container's host name is drawn anew for each; everything else must be as it was there, too.
    renamed = {"hostname_sha256"} if here.container.engine and plan.identity.container.engine else set()
    for path, before, now in _differences("", msgspec.to_builtins(plan.identity), msgspec.to_builtins(here)):
        if path not in renamed:
            raise _differs(path, before, now)


def check_options(plan: RunPlan, given: Mapping[str, object]) -> None:
    """Compare the options that are given again, by name, with those that the run was begun with.

    Raises:
        KitError: naming an option, and both values.
    """
    for name, value in given.items():
        began_with = plan.options.get(name)
        if value != began_with:
            raise KitError(
                f"{name} is {_shown(value)} here, {_shown(began_with)} in the unfinished run; "
                "leave it out, or begin a run with another --out"
            )
        # A built-in suite is the kit's own, whose revision has been compared.
        if name == "SUITE" and str(value).endswith(".toml") and load_suite(str(value)).sha256 != plan.suite.sha256:
            raise KitError(f"{value} was edited since the run began; begin a run with another --out")


def without_counters(plan: RunPlan) -> RunPlan:
    """Return the plan of a run that is resumed: the counters of its state before are null, with the reason."""
    before = plan.state_before
    why = reason("run_resumed")
    nulled = msgspec.structs.replace(
        before,
        **dict.fromkeys(STATE_COUNTERS),
        reasons=before.reasons | dict.fromkeys(STATE_COUNTERS, why),
    )
    return msgspec.structs.replace(plan, state_before=nulled)


def _differs(what: str, begun_on: object, here: object) -> KitError:
    return KitError(
        f"the run cannot go on: {what} was {_shown(begun_on)} when it began and is {_shown(here)} now; "
        "resume it where it began, or begin a run with another --out"
    )


def _shown(value: object) -> str:
    """Return a value as it is read in a sentence."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "not given"
    return "not given" if value is None else str(value) or "empty"


def _differences(path: str, before: object, now: object) -> Iterator[tuple[str, object, object]]:
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted((before.keys() | now.keys()) - HASHES):
            yield from _differences(f"{path}.{name}".lstrip("."), before.get(name), now.get(name))
    elif before != now:
        yield path, before, now
