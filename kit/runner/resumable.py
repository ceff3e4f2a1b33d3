"""Whether a run may go on here: launches of two machines, or of two kits, are not one measurement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from kit.backends.backend_catalog import CATALOG
from kit.errors import KitError
from kit.fingerprint.fingerprint import kit_revision
from kit.profile.cell import Variant
from kit.profile.facts import Identity, fact_of
from kit.profile.fields import reason
from kit.profile.program_source import ProgramSource, file_sha256
from kit.profile.schema import Kit
from kit.profile.unfinished import NAME_CODE, RunPlan, resume_command
from kit.runner.prepare import identify, with_digests
from kit.suites.plan import named_code
from kit.suites.run_request import RunRequest
from kit.suites.suite import was_edited
from kit.version import __version__

# Without these the run's own code is not named.
NAMES_CODE = ("SUITE", *NAME_CODE)


def check_resumable(plan: RunPlan, cpus: list[int]) -> None:
    """Compare what the run was begun on with what is here. Takes about a second.

    Raises:
        KitError: naming what differs.
    """
    suite = plan.suite
    sources = {name: replace(source, sha256=file_sha256(source.path)) for name, source in suite.programs.items()}
    backends = list(dict.fromkeys(cell.backend for cell in plan.cells))
    here = identify(backends, suite.variants, names_only=plan.names_only)
    began = _conditions(plan.kit, suite.programs, suite.variants, plan.cpus, plan.identity)
    kit = Kit(version=__version__, revision=kit_revision())
    now = _conditions(kit, sources, with_digests(suite.variants), cpus, here)
    for name in began | now:
        if began.get(name) != now.get(name):
            raise KitError(
                f"this run cannot be resumed: {name} was {_shown(began.get(name))} when it started and is "
                f"{_shown(now.get(name))} now; resume it where it started, or start a new run with another --out"
            )


def _conditions(
    kit: Kit, programs: Mapping[str, ProgramSource], variants: Sequence[Variant], cpus: list[int], identity: Identity
) -> dict[str, object]:
    """Return all that must stay as it is while a run goes on, by the name it is told by."""
    return {
        "the kit": kit.version,
        "the kit's revision": kit.revision,
        **{f"{source.path} of program {name}": source.sha256 for name, source in programs.items()},
        **{f"image {variant.image} of variant {variant.name}": variant.image_digest for variant in variants},
        "usable CPUs": cpus,
        **dict(sorted(identity.setup().items())),
    }


def check_options(plan: RunPlan, given: Mapping[str, object]) -> None:
    """Compare the options that are given again, by name, with those that the run was begun with.

    Raises:
        KitError: naming an option, and both values.
    """
    for name, value in given.items():
        began_with = plan.options.get(name)
        if value != began_with:
            remedy = "give it as it was" if name in NAMES_CODE else "leave it out"
            raise KitError(
                f"{name} is {_shown(value)} here and {_shown(began_with)} in the unfinished run; "
                f"{remedy}, or start a new run with another --out"
            )
        # A built-in suite is the kit's own, whose revision has been compared.
        if name == "SUITE" and was_edited(str(value), plan.suite.sha256):
            raise KitError(f"{value} was edited since the run started; start a new run with another --out")


def check_code(path: Path, plan: RunPlan, request: RunRequest) -> None:
    """Let only code run that is the kit's own, or that is typed now: the folder of a run may be somebody else's.

    Raises:
        KitError: with the command that names the code.
    """
    if unknown := [cell.backend for cell in plan.cells if cell.backend not in CATALOG]:
        raise KitError(f"the unfinished run has the framework {unknown[0]}, which is none here; choose another --out")
    sources, known = named_code(request, plan.options)
    programs = {name: replace(source, sha256="") for name, source in sources.items()}
    begun = {name: replace(source, sha256="") for name, source in plan.suite.programs.items()}
    variants = [replace(variant, image_digest=None) for variant in plan.suite.variants]
    unnamed = [f"program {name}" for name, source in begun.items() if programs.get(name) != source]
    unnamed += [f"variant {variant.name}" for variant in variants if variant.names_code and variant not in known]
    if unnamed:
        raise KitError(
            f"the unfinished run has {', '.join(unnamed)}, which this command does not name; if you trust what it "
            f"runs, resume it with `{resume_command(path)}`"
        )


def without_counters(plan: RunPlan) -> RunPlan:
    """Return the plan of a run that is resumed: the counters of its state before are null, with the reason."""
    before = plan.state_before
    counters = [name for name in before.facts if fact_of(name).form == "counter"]
    state = replace(
        before,
        facts=before.facts | dict.fromkeys(counters),
        reasons=before.reasons | dict.fromkeys(counters, reason("run_resumed")),
    )
    return replace(plan, state_before=state)


def _shown(value: object) -> str:
    """Return a value as it is read in a sentence."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "not given"
    return "not given" if value is None else str(value) or "empty"
