"""`kit audit`: check profiles for problems of power, utilization, fairness and the record."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kit.cli.compare_command import CompareRequest
from kit.cli.options import (
    PROFILES,
    format_options,
    in_processes,
    labels_of,
    option_from,
    print_report,
    profile_files,
    read_meter,
    without_collector,
)
from kit.errors import KitError

if TYPE_CHECKING:
    from kit.audit.finding import Severity
    from kit.audit.rule import Rule
    from kit.compare.meter import Meter

EXIT_UNREADABLE, FAIL_ON = 2, "warning"


@click.command
@click.argument("profiles", nargs=-1, required=True, type=PROFILES)
@format_options
@click.option(
    "--fail-on",
    type=click.Choice(["note", "warning", "bad"]),
    default=FAIL_ON,
    show_default=True,
    help="Exit 1 if a finding is at least this severe; else 5 if a check could not run; else 0.",
)
@option_from(CompareRequest, "meter_file")
@click.option("--rule", "names", multiple=True, metavar="NAME,…", help="Run only this rule (repeatable).")
@click.option("--without", multiple=True, metavar="NAME,…", help="Skip this rule (repeatable).")
@without_collector
def audit(
    *,
    profiles: tuple[Path, ...],
    format_name: str,
    meter_file: Path | None,
    fail_on: Severity,
    names: tuple[str, ...],
    without: tuple[str, ...],
) -> int:
    """Check PROFILES for problems of power, utilization, fairness and the record.

    A folder stands for the profiles in it. Power caps of GPUs are also compared between profiles.
    docs/reference/audit explains each rule.
    """
    import msgspec

    from kit.audit.audit import audit_together
    from kit.audit.finding import Audit, exit_code
    from kit.audit.subject import MeasuredRun
    from kit.profile.schema import Profile
    from kit.report.audit import audit_report

    rules = _chosen(names, without)
    paths = list(profile_files(profiles))
    meter = read_meter(meter_file)
    files = list(zip(labels_of(paths), paths, strict=True))
    # Readings of a meter would be handed to each process, and what was read of them not back.
    encoded = in_processes(partial(_audited, rules=rules, meter=meter), files, in_one=meter is not None)
    answers = [msgspec.msgpack.decode(answer, type=tuple[Profile | None, Audit]) for answer in encoded]
    answers.sort(key=lambda answer: answer[0] is None)
    runs = [MeasuredRun(part.profiles[0].label, profile) for profile, part in answers if profile is not None]
    if not runs:
        raise KitError(answers[0][1].profiles[0].error)
    result = audit_together([part for _, part in answers], runs, rules)
    options = [("--rule", name) for name in names] + [("--without", name) for name in without]
    options += [("--meter", str(meter_file))] if meter_file is not None else []
    options += [("--fail-on", fail_on)] if fail_on != FAIL_ON else []
    command = shlex.join(["kit", "audit", *map(str, profiles), *(word for option in options for word in option)])
    print_report(audit_report(result, runs, fail_on, command), format_name)
    return EXIT_UNREADABLE if len(runs) < len(answers) else exit_code(result, fail_on)


def _audited(file: tuple[str, Path], rules: Sequence[Rule], meter: Meter | None) -> bytes:
    """Return as much of one file as rules on several runs and reports take, and what the rules say of it.

    They are null and the reason where it cannot be audited. In MessagePack: pickling takes four times as long.
    """
    import msgspec

    from kit.audit.audit import audit_run
    from kit.audit.finding import Audit, AuditedProfile
    from kit.audit.subject import MeasuredRun
    from kit.profile.store import read_profile

    label, path = file
    try:
        profile = read_profile(path)
        if not profile.measured:
            raise KitError(f"{path}: its numbers were published, not measured; there is nothing to audit")
        if meter is not None:
            profile = meter.added_to(label, profile)
    except KitError as error:
        unread = AuditedProfile(label=label, error=str(error))
        return msgspec.msgpack.encode((None, Audit(profiles=[unread], findings=[], not_checked=[], rules=[])))
    cells = [msgspec.structs.replace(result, launches=[]) for result in profile.cells]
    small = msgspec.structs.replace(profile, cells=cells, sensors=[])
    return msgspec.msgpack.encode((small, audit_run(MeasuredRun(label, profile), rules)))


def _chosen(names: Sequence[str], without: Sequence[str]) -> list[Rule]:
    """Return the rules of these names, written with hyphens or underscores; all where none is given; less others."""
    from kit.audit.rule import all_rules
    from kit.suites.suite import check_choice

    known = {rule.name.replace("_", "-"): rule for rule in all_rules()}
    wanted, unwanted = (
        [name.strip().replace("_", "-") for word in words for name in word.split(",")] for words in (names, without)
    )
    for name in (*wanted, *unwanted):
        check_choice("rule", name, list(known))
    chosen = [known[name] for name in dict.fromkeys(wanted or known) if name not in unwanted]
    if not chosen:
        raise click.UsageError("--without leaves no rule; leave one of its names out")
    return chosen
