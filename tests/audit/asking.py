"""Asks rules of made profiles: what they find, and the codes of what they lack."""

from kit.audit.audit import audit
from kit.audit.rule import all_rules
from kit.audit.subject import MeasuredRun

RULES = {rule.name: rule for rule in all_rules()}


def asked(names, *profiles):
    """The audit of these profiles by the rules of these names; None: all."""
    runs = [MeasuredRun(f"host{index}", built) for index, built in enumerate(profiles)]
    return audit(runs, None if names is None else [RULES[name] for name in names])


def outcomes(rule, *profiles):
    """What one rule finds, and the codes of what it lacks."""
    result = asked([rule], *profiles)
    return result.findings, [missing.reason.code for missing in result.not_checked]
