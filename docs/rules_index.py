"""docs/reference/audit/index.md, from the rules themselves; docs/generate.py writes it.

A rule is listed under the page that has its section. A rule or a finding without a section, and a section without
either, are errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from kit.audit.rule import Rule, all_rules, sentences

PAGES = Path(__file__).parent / "reference/audit"
# Page -> its title in the index. A run's own order: what it ran on, how long it took, what it gave.
AREAS = {
    "host": "The host",
    "steps": "Step times",
    "fairness": "Fairness",
    "gpus": "GPUs",
    "energy": "Energy",
    "results": "Results and the record",
}
SCOPES = {"cell": "cells", "group": "groups", "run": "runs", "runs": "several runs together"}
DEVICES = {"any": "", "cpu": " (CPU)", "accelerator": " (GPU, TPU)"}

INTRO = """\
# Audit rules

`kit audit` checks profiles for problems of power, utilization, fairness and the record itself, with \
the rules on this page. Each rule has one of three outcomes for a cell, a group or a run:

- It *finds* something. The finding has its evidence and, where one is known, a remedy. If a command helps, \
the remedy has the whole command, for the cells that the finding is about.
- It finds *nothing*.
- It *could not check*, because a counter, a sensor, a third round or a field of a newer schema is missing. A check \
that cannot run does not count as a pass. The closing line says what is missing.

## Run an audit

```sh
kit audit run.json                                   # findings, the most severe first
kit audit profiles/ --fail-on bad                    # a folder: power caps of GPUs are also compared
kit audit run.json --rule contention,threads-differ  # only these rules
kit audit run.json --without above-ceiling           # all rules but this one
kit audit run.json --meter meter.csv                 # with the joules of an external meter
kit audit run.json --format json                     # for programs; the schema is docs/reference/audit.schema.json
kit audit run.json --format junit                    # for a CI server: each rule is a test case
kit audit run.json --format prometheus > /var/lib/node_exporter/steadykit.prom
```

| severity | meaning |
|---|---|
| bad | The number is not what it claims to be. |
| warning | Something disturbed the number, or the comparison is not fair. |
| note | A fact explains the number. |

| exit code | meaning |
|---|---|
| 0 | No finding is at least as severe as `--fail-on` (default: `warning`), and every rule that could \
report one was able to check. |
| 1 | At least one finding is at least as severe as `--fail-on`. |
| 2 | The command line is wrong, or a file cannot be read. A digest that does not match \
counts as unreadable. The audit names the file and continues with the others. |
| 5 | There is no such finding, but a rule that could report one was unable to check. |

**In CI, use the exit code.** A CI server shows a JUnit case that could not be checked as *skipped*, which is green. \
The last line of the audit is the command that leaves out the rules that your machine cannot check, with `--without`; \
rules of later versions still run.

**Counts.** A line of the audit covers all cells, groups or GPUs of a profile for which a rule finds the same. \
`1 bad finding (4 cells)` is one such line about four cells. JSON, CSV and Prometheus have each cell by itself.

**Records.** In CSV and Prometheus, each record has an outcome: `finding`, `not_checked`, `nothing_found`, \
`not_applicable` or `unreadable`. A record of `not_checked` has the worst severity in `could_be`. `rank` orders \
findings of the same severity by the approximate percentage of time that they concern.

**Where findings appear.** `kit compare --why` explains a comparison with the findings of the same rules. A finding \
concerns one cell of one group, over all blocks of all finished launches, unless its section says otherwise. \
*Per step* counts lead-in steps and timed steps.

**Frameworks run with their defaults.** Steadykit applies no remedy by itself. To test one, run it as a variant in the \
same rounds.

**Thresholds.** Each section has the rule's thresholds and their evidence. Each threshold is a named constant in \
`kit/audit/`.

**One cause, one finding.** Where several rules see the same cause, the audit shows the most specific finding. \
`variable-binds-one` hides others only as a warning. Slow blocks that are [contended](host.md#contention) are not \
reported as bimodal, unless page faults differ between the modes.

| shown | hidden |
|---|---|
"""


def rules_page() -> str:
    """Return the whole page.

    Raises:
        ValueError: a rule or a finding has no section, or a section has neither.
    """
    pages = {anchor: page for page in AREAS for anchor in _anchors(page)}
    rules = {rule.name: rule for rule in all_rules()}
    codes = {_anchor(code) for code in sentences()}
    if codes != set(pages):
        raise ValueError(
            f"docs/reference/audit: no section for {sorted(codes - set(pages))}, "
            f"no rule for the sections {sorted(set(pages) - codes)}"
        )
    parts = [INTRO, *_hidden(rules.values(), pages)]
    for page, title in AREAS.items():
        names = [code for anchor in _anchors(page) if (code := anchor.replace("-", "_")) in rules]
        parts.append(f"\n## {title}\n\n| rule | worst severity | applies to | finds |\n|---|---|---|---|\n")
        parts += [_line(rules[name], pages) for name in names]
    return "".join(parts)


def _hidden(rules: Iterable[Rule], pages: dict[str, str]) -> Iterator[str]:
    """Yield a line for each finding that hides others."""
    for rule in rules:
        for code, explains in rule.explains.items():
            if explains:
                yield f"| {_link(code, pages)} | {', '.join(_link(each, pages) for each in explains)} |\n"


def _anchors(page: str) -> list[str]:
    """Return the anchors of a page's sections, in their order."""
    lines = (PAGES / f"{page}.md").read_text().splitlines()
    return [_anchor(line.removeprefix("## ")) for line in lines if line.startswith("## ")]


def _anchor(words: str) -> str:
    return words.strip().lower().replace(" ", "-").replace("_", "-")


def _line(rule: Rule, pages: dict[str, str]) -> str:
    words = (rule.check.__doc__ or "").splitlines()[0].removeprefix("Find ").rstrip(".")
    for code in rule.explains:
        words += f" (also: {_link(code, pages)})" if code != rule.name else ""
    return f"| {_link(rule.name, pages)} | {rule.severity} | {SCOPES[rule.scope]}{DEVICES[rule.on]} | {words} |\n"


def _link(code: str, pages: dict[str, str]) -> str:
    anchor = _anchor(code)
    return f"[{anchor}]({pages[anchor]}.md#{anchor})"
