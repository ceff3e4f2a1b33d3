"""Why a node stands out: what the audit finds of its machine and boards, and does not find on most others."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kit.audit.audit import audit
from kit.audit.finding import Finding
from kit.audit.rule import Audited, all_rules
from kit.profile.schema import Profile

# Files of rules on what a machine does to a step; others ask how it was measured, and what of.
RULES_OF = ("boards", "contention", "host")
# So many others show what is usual: auditing takes five times as long as reading.
OTHERS_AUDITED = 8


def machine_findings(label: str, profile: Profile) -> list[Finding]:
    """Return what the audit finds of the machine, each once by its gravest, warnings and worse."""
    rules = [rule for rule in all_rules() if rule.scope != "fleet" and rule.check.__module__.endswith(RULES_OF)]
    findings: dict[str, Finding] = {}
    for finding in audit([Audited(label, profile)], rules).findings:
        if finding.severity != "note":
            findings.setdefault(finding.code, finding)
    return list(findings.values())


def unusual(findings: Sequence[Finding], of_others: Sequence[Sequence[Finding]]) -> list[Finding]:
    """Return the findings of a node that half of some others do not have as gravely."""
    return [
        replace(finding, profile="")
        for finding in findings
        if 2 * sum(_has(finding, others) for others in of_others) < max(1, len(of_others))
    ]


def _has(finding: Finding, others: Sequence[Finding]) -> bool:
    return any(other.code == finding.code and 2 * other.rank >= finding.rank for other in others)
