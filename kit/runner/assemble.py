"""From what an unfinished run has kept to its profile. Measures nothing and concludes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from kit.profile.identity import State
from kit.profile.launch import Launch
from kit.profile.schema import SCHEMA, CellResult, Profile, StateSpan
from kit.profile.unfinished import RunPlan


def assemble_profile(
    plan: RunPlan, launches: Sequence[Launch], state_after: State | None, *, interrupted: bool
) -> Profile:
    """Build the profile of a run, finished or not."""
    certificates = (launch.certificate for launch in launches)
    return Profile(
        schema=SCHEMA,
        id=plan.id,
        created=plan.created,
        kit=plan.kit,
        identity=plan.identity,
        state=StateSpan(before=plan.state_before, after=state_after),
        clock=next((found for found in certificates if found is not None), None),
        sensors=plan.sensors,
        suite=plan.suite,
        groups=plan.groups,
        cells=[
            CellResult(
                key=cell.key,
                cell=cell,
                launches=sorted(
                    (launch for launch in launches if launch.cell_key == cell.key),
                    key=lambda launch: (launch.round, launch.group),
                ),
            )
            for cell in plan.cells
        ],
        interrupted=interrupted,
    )
