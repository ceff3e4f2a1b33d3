"""One profile for a reader (`kit show`): machine, state, clock, sensors, phases and launches."""

from __future__ import annotations

from rich.text import Text

from kit.compare.counted import counted
from kit.profile.parity import PARITY_STEPS
from kit.profile.schema import Profile
from kit.report.observer_text import observer_section
from kit.report.plain import one_line
from kit.report.profile_cells import launches_section, phases_section
from kit.report.profile_machine import clock_section, machine_section, sensors_section, state_section
from kit.report.profile_parity import parity_section
from kit.report.terminal import to_string


def render(profile: Profile, *, color: bool = False) -> str:
    """Lay the profile out in sections; with `color`, ANSI colours for a terminal."""
    suite = profile.suite
    head = (
        f"{profile.id} · suite {suite.name} · {counted(suite.launches, 'launch')} a cell"
        f" · data {suite.data} · seed {suite.seed} · {profile.created} · kit {profile.kit}"
    )
    sections = {
        "Machine": machine_section(profile.identity),
        "State": state_section(profile.state),
        "Clock": clock_section(profile.clock),
        "Sensors": sensors_section(profile.sensors),
        "Phases (median over launches)": phases_section(profile.cells),
        "Launches": launches_section(profile.cells),
        "Observer test (sampler running / stopped)": observer_section(profile.observer),
        f"Parity (loss of each step, {PARITY_STEPS} steps, dropout off)": parity_section(profile.cells),
    }
    lines = [Text(one_line(head), style="bold")]
    if profile.interrupted:
        lines.append(
            Text(
                "INTERRUPTED: some launches are missing; `kit run --resume --out` this file goes on.",
                style="bold yellow",
            )
        )
    for title, section in sections.items():
        lines += [Text(), Text(title, style="bold cyan"), *(Text(f"  {line}") for line in section)]
    return to_string(lines, color=color)
