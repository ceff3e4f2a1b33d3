"""`kit run --ceilings`: a suite with the operations that show what its frameworks reach on its devices."""

from __future__ import annotations

from msgspec.structs import replace

from kit.backends.catalog import FRAMEWORKS
from kit.suites.plan import DEFAULT_COMPILE_MODE
from kit.suites.suite import Suite
from kit.workloads.operations import OPERATIONS

# Of a ceiling the best counts: a second start shows whether the first was slow.
CEILING_ROUNDS = 2


def with_ceilings(suite: Suite) -> Suite:
    """Return the suite with every operation, in the precisions and on the devices, threads and variants of its cells.

    Of programs no framework is known: they are measured in each.
    """
    tables = [
        replace(
            axes,
            workloads=list(OPERATIONS),
            parameters={},
            tasks=["infer"],
            feeds=["device"],
            compile_modes=[DEFAULT_COMPILE_MODE],
            **({"backends": FRAMEWORKS, "precisions": ["float32"]} if suite.programs else {}),
        )
        for axes in suite.axes
        if not {*axes.workloads} <= OPERATIONS.keys() - suite.programs.keys()
    ]
    measure = replace(suite.measure, ceiling_rounds=suite.measure.ceiling_rounds or CEILING_ROUNDS)
    return replace(suite, cells=[*suite.axes, *tables], measure=measure) if tables else suite
