"""Cells of one run that were to differ in code, and loaded the same: their ratio answers nothing.

    variants of a program   PYTHONPATH or python= differ   ╮ the same files from outside the environment, by content,
    programs                file differs, function alike   ╯ and the same environment ─► the same code

A variant that sets other variables, or a program that is given twice, is measured against itself on purpose.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from kit.compare.rows import SAME_CODE, Mismatch
from kit.compare.runs import Sample
from kit.import_order import PATHS
from kit.profile.cell import DEFAULT_VARIANT, Variant
from kit.profile.schema import ImportedCode, SuiteUsed

# What cells differ in that were to differ in code.
BY = Literal["PYTHONPATH", "python", "program"]
IN_CODE = ("variant", "workload", "parameters")


class Loaded(NamedTuple):
    """What a launch had imported, comparable between launches; of files only the content counts."""

    files: tuple[str, ...]
    left_out: int
    left_out_sha256: str
    environment: str


class SameCode(NamedTuple):
    """What is known of two cells that were to differ in code."""

    by: BY
    files: int | None  # that both loaded, and nothing else; null: it was not recorded


def loaded(sample: Sample) -> frozenset[Loaded]:
    """Return what the launches of a cell had imported; nothing where that was not recorded."""
    if sample.loaded is None:
        codes = [launch.record.imported for launch in sample.measured]
        sample.loaded = frozenset([_loaded(code) for code in codes if code is not None])
    return sample.loaded


def same_code(suite: SuiteUsed, a: Sample, b: Sample) -> SameCode | None:
    """Return what two cells of one run have in common that were to differ in code; None: they differ, or were not to.

    One launch of each with the same code is enough: cells that differ have none.
    """
    by, source = _were_to_differ(suite, a, b), suite.programs.get(a.cell.workload)
    if by is None or (source is not None and source.command is not None):  # what a command loads is not recorded
        return None
    sides = loaded(a), loaded(b)
    if not all(sides):
        return SameCode(by, None)
    common = sides[0] & sides[1]
    return SameCode(by, max(len(known.files) + known.left_out for known in common)) if common else None


def blocked_by_code(suite: SuiteUsed, a: Sample, b: Sample) -> list[Mismatch]:
    """Return why two cells of one run are kept apart that were to differ in code and do not."""
    known = same_code(suite, a, b)
    if known is None or known.files is None:
        return []
    return [Mismatch(kind=SAME_CODE, name=known.by, grade="incompatible", values=[(known.files, [a.name, b.name])])]


def _loaded(code: ImportedCode) -> Loaded:
    files = tuple(sorted(file.sha256 for file in code.files))
    return Loaded(files, code.left_out, code.left_out_sha256, code.environment_sha256)


def _were_to_differ(suite: SuiteUsed, a: Sample, b: Sample) -> BY | None:
    if a.cell.key_without(IN_CODE) != b.cell.key_without(IN_CODE):
        return None
    programs = [suite.programs.get(sample.cell.workload) for sample in (a, b)]
    first, second = programs
    are_other_work = a.cell.workload != b.cell.workload or a.cell.parameters != b.cell.parameters
    if are_other_work and (
        first is None or second is None or (first.function, first.sha256) != (second.function, second.sha256)
    ):
        return None
    variants = {known.name: known for known in suite.variants}
    variant, baseline = (variants.get(sample.cell.variant, Variant(name=DEFAULT_VARIANT)) for sample in (a, b))
    if variant.image != baseline.image:  # what images hold is not recorded
        return None
    if variant.env.get(PATHS) != baseline.env.get(PATHS):
        return "PYTHONPATH"
    if variant.python != baseline.python:
        return "python"
    return "program" if first is not None and second is not None and first.path != second.path else None
