"""`kit audit`: what the power, utilization, fairness and record of profiles can be held to."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kit.cli.options import PROFILES, format_options, labels_of, print_report, profile_files
from kit.errors import KitError

if TYPE_CHECKING:
    from kit.audit.finding import Severity
    from kit.audit.rule import Rule

EXIT_UNREADABLE = 2


@click.command(short_help="Say what power, utilization and fairness can be held to.")
@click.argument("profiles", nargs=-1, required=True, type=PROFILES)
@format_options
@click.option(
    "--fail-on",
    type=click.Choice(["note", "warning", "bad"]),
    default="warning",
    show_default=True,
    help="Exit 1: a finding as grave as this; 5: none, and one could not be checked for; 0: neither.",
)
@click.option("--rule", "names", multiple=True, metavar="NAME,…", help="Ask this rule alone (repeatable).")
def audit(*, profiles: tuple[Path, ...], format_name: str, fail_on: Severity, names: tuple[str, ...]) -> int:
    """Audit PROFILES: each rule finds something, finds nothing, or could not check, which is no pass.

    A folder stands for the profiles in it; several are audited together. docs/audit.md has a section for each rule.
    """
    from kit.audit.audit import audit as ask_rules
    from kit.audit.finding import AuditedProfile, exit_code
    from kit.audit.rule import Audited
    from kit.profile.store import read_profile
    from kit.report.audit import audit_report

    rules = _chosen([name for word in names for name in word.split(",")])
    paths = list(profile_files(profiles))
    # A thousand profiles are millions of objects without a cycle among them.
    gc.disable()
    audited, unread = [], []
    for label, path in zip(labels_of(paths), paths, strict=True):
        try:
            profile = read_profile(path)
        except KitError as error:
            unread.append(AuditedProfile(label=label, error=str(error)))
            continue
        if profile.measured:
            audited.append(Audited(label, profile))
        else:
            why = f"{path}: it was published, not measured: there is nothing to audit"
            unread.append(AuditedProfile(label=label, error=why))
    if not audited:
        raise KitError(unread[0].error)
    result = ask_rules(audited, rules, unread)
    print_report(audit_report(result, audited, fail_on), format_name)
    return EXIT_UNREADABLE if unread else exit_code(result, fail_on)


def _chosen(names: Sequence[str]) -> list[Rule]:
    """Return the rules of these names, written with hyphens or underscores; all where none is given."""
    from kit.audit.rule import all_rules
    from kit.suites.suite import check_choice

    known = {rule.name.replace("_", "-"): rule for rule in all_rules()}
    wanted = [name.strip().replace("_", "-") for name in names]
    for name in wanted:
        check_choice("rule", name, list(known))
    return [known[name] for name in dict.fromkeys(wanted)] or list(known.values())
