"""A page: one HTML file without scripts and without anything to load, made of the reports that commands print.

verdicts ─ side by side ─ groups ─ rounds ─ phases ─ energy ─ findings ─ published figures ─ method ─ identity
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kit.audit.audit import audit
from kit.audit.subject import MeasuredRun
from kit.compare.compare import OF_CELLS, compare
from kit.compare.notes import read_run
from kit.compare.rows import Comparison
from kit.compare.runs import Run
from kit.profile.schema import Profile
from kit.report.audit_report import audit_report
from kit.report.comparison_report import comparison_report
from kit.report.headline_and_notes import headline
from kit.report.page_tables_and_charts import (
    DEFINITIONS,
    LOOKS,
    PHASES,
    STYLE,
    ChartMember,
    bars,
    blocks_chart,
    figure,
    fragment,
    long_blocks_chart,
    members_of,
    phase_keys,
    timeline,
    words_of,
)
from kit.report.profile_report import profile_report
from kit.report.report_table import Report
from kit.report.values_in_words import one_line
from kit.report.verdicts_in_words import answer

# Phases that follow each other have hues that are far apart.
FILLS = "".join(f".p{index}{{fill:hsl({index * 137 % 360} var(--fill))}}" for index in range(len(PHASES)))
INKS = "".join(f".c{look}{{fill:var(--c{look});stroke:var(--c{look})}}" for look in range(LOOKS))
# Colors of text have a contrast of 4.5 and more on their background, others of 3. `kit plot` has the same three
# frameworks' colors; here they are darker or lighter where a background needs it.
PAGE_STYLE = """
:root{color-scheme:light dark;--paper:#fff;--text:#1b1f24;--soft:#57606a;--line:#d0d7de;--band:#f3f5f7;--link:#0a58ca;
--c0:#0072b2;--c1:#c75100;--c2:#008a64;--c3:#1b1f24;--c4:#b0568c;--c5:#8a6100;--c6:#2a7fae;--fill:60% 86%}
@media screen and (prefers-color-scheme:dark){:root{--paper:#14171a;--text:#e6e8ea;--soft:#a3abb3;--line:#3b434b;
--band:#1d2226;--link:#7ab7ff;--c0:#56a8e0;--c1:#f08a4b;--c2:#2fbf93;--c3:#e6e8ea;--c4:#e3a3c7;--c5:#e0ae45;--c6:#8cd0f5;
--fill:30% 30%}}
body{margin:0 auto;max-width:76rem;padding:1rem;background:var(--paper);color:var(--text);
font:15px/1.5 system-ui,sans-serif;--kit-text:var(--text)}
h1{font-size:1.5rem;margin:.2rem 0}h2{font-size:1.2rem;margin:2rem 0 .6rem;border-bottom:1px solid var(--line)}
h3{font-size:1rem;margin:1.2rem 0 .3rem}h1,h3,dd,dt,p,li{overflow-wrap:anywhere}
a{color:var(--link)}a:focus-visible,summary:focus-visible,div:focus-visible{outline:2px solid var(--link)}
.skip{position:absolute;left:-99rem}.skip:focus{position:static}
nav ul{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem}
.verdicts,.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,20rem),1fr));gap:.6rem 1.5rem}
.verdicts>div{border-left:3px solid var(--line);padding-left:.7rem;break-inside:avoid}
dl{margin:.5rem 0}dt{font-weight:600}dd{margin:0}figure{margin:0;break-inside:avoid}
figcaption,.soft,.kit .notes{color:var(--soft)}
figcaption b{display:block;color:var(--text)}summary{cursor:pointer;margin:.6rem 0}
figure svg[role]{display:block;width:100%;height:auto}.defs{position:absolute}
.named{margin-right:.6em;white-space:nowrap}
.key{width:.8em;height:.8em;margin-right:.3em}svg text{font-size:10px;fill:var(--text);stroke:none}
.m{text-anchor:middle}.e{text-anchor:end}.head{font-weight:600}.band{fill:var(--band)}.grid{stroke:var(--line)}
[class^=p],.key[class*=" p"]{stroke:var(--soft);stroke-width:.4}
.hollow{fill:none}path.level{fill:none;stroke-width:2}path.blocks{stroke:none}
.tables>.kit{display:flex;flex-wrap:wrap;gap:0 3rem}.part{max-width:100%}.tables .part>p{width:0;min-width:100%}
@media (max-width:40rem){section[aria-labelledby=findings] :is(tr,td,th){display:block;min-width:0}
section[aria-labelledby=findings] tr{margin:.5rem 0}section[aria-labelledby=findings] td:empty{display:none}}
@media print{body{max-width:none;font-size:10pt}nav,.skip{display:none}.kit .scroll{overflow:visible}
.kit table{white-space:normal;font-size:8pt}.kit :is(td,th){overflow-wrap:break-word}
h2,h3{break-after:avoid}.tables .part{break-inside:avoid}}
"""
# Tables of `kit show` in each section: those of the last two are open, others folded away under these words.
LAUNCHES = "Every launch", ("Launches", "Fits", "Classes, over the repeats of a fit")
MEDIANS = "Phases as a table", ("Phases, median over rounds",)
READINGS = "Every reading", ("Energy", "Sampled, mean and max", "Sensors left out")
METHOD, MACHINE = ("Suite", "Clock", "Sensors"), ("Machine", "State")
# What a reader has to know before the charts of a section.
BLOCKS_READ = """A mark is one block of steps, a line the median of a cell's blocks in one round. Hollow marks do not
count, because other programs disturbed them or the launch failed."""
PHASES_READ = """Each row is one launch of one round, from left to right: its phases, and its blocks as solid bars.
The cells of a group take turns."""

OVER_TIME_READ = """Power and clock of each accelerator against the time in the long energy block, in which one program
runs alone. A line is one launch on one board. A clock that falls shows a board that does not sustain its burst."""


class ShownProfile(NamedTuple):
    """A profile as a page shows it."""

    label: str
    profile: Profile
    run: Run
    within: Comparison  # its cells against each other
    shown: Report  # as `kit show` prints it

    def folded(self, summary: str, titles: Sequence[str]) -> str:
        """Return those of its tables that are there, folded away; without a summary open."""
        listed = [table for table in self.shown.tables if table.title in titles]
        tables = fragment(Report("", (), listed)) if listed else ""
        return f"<details><summary>{summary}</summary>{tables}</details>" if listed and summary else tables


def page(
    profiles: Sequence[tuple[str, Profile]],
    together: Comparison | str,
    published: Sequence[Report],
    titles: Mapping[str, str],
) -> str:
    """Return the page.

    Args:
        profiles: one or more that were measured, each with its label.
        together: all of them, as `kit compare` compares them; or why it does not.
        published: tables of suites, with figures from documents beside those measured.
        titles: of each backend, as people write it.
    """
    runs = [MeasuredRun(label, profile) for label, profile in profiles]
    every = [_shown(label, profile) for label, profile in profiles]

    def for_each(show: Callable[[ShownProfile], str]) -> str:
        parts = [(f"<h3>{words_of(each.label)}</h3>" if every[1:] else "", show(each)) for each in every]
        return "".join(head + html for head, html in parts if html)

    if isinstance(together, str):
        verdicts, compared = for_each(lambda each: _verdicts(each.within, titles)), [each.within for each in every]
        beside = f"<p>Not compared with each other: {words_of(together)}.</p>"
    else:
        verdicts, compared = _verdicts(together, titles), [together]
        beside = "" if together.kind == "cells" else _compared(together, titles)
    sections = {
        "Verdicts": verdicts,
        "Side by side": beside,
        "Groups": for_each(lambda each: _compared(each.within, titles)),
        "Rounds and blocks": f'<p class="soft">{BLOCKS_READ}</p>'
        + for_each(lambda each: _charts(each, blocks_chart, has_keys=True) + each.folded(*LAUNCHES)),
        "Phases": f'<p class="soft">{PHASES_READ}</p>'
        + for_each(lambda each: phase_keys(each.profile) + _charts(each, timeline) + each.folded(*MEDIANS)),
        "Energy and utilization": for_each(
            lambda each: _charts(each, bars) + _over_time(each) + each.folded(*READINGS)
        ),
        "Findings": fragment(audit_report(audit(runs), runs, "warning", "kit audit")),
        "Published figures": "".join(map(fragment, published)),
        "How it was measured": for_each(_method),
        "Identity": for_each(_identity),
    }
    ids = {name: name.lower().replace(" ", "-") for name, html in sections.items() if html}
    links = "".join(f'<li><a href="#{key}">{name}</a></li>' for name, key in ids.items())
    body = "".join(
        f'<section aria-labelledby="{key}"><h2 id="{key}">{name}</h2>{sections[name]}</section>'
        for name, key in ids.items()
    )
    name = words_of(" and ".join(dict.fromkeys(each.profile.suite.name for each in every)))
    lines = [words_of(line) for comparison in compared for line in headline(comparison, titles, wide=True)]
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{name} · Steadykit</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{STYLE}{FILLS}{INKS}{PAGE_STYLE}</style></head><body>{DEFINITIONS}"
        f'<a class="skip" href="#main">Skip to the verdicts</a><header><h1>{name}</h1>'
        f'<p class="soft">{"<br>".join(lines)}</p><nav aria-label="Sections"><ul>{links}</ul></nav></header>'
        f'<main id="main" tabindex="-1">{body}</main></body></html>\n'
    )


def _shown(label: str, profile: Profile) -> ShownProfile:
    run = read_run(label, profile)
    return ShownProfile(label, profile, run, compare([run], axes=OF_CELLS), profile_report(profile))


def _verdicts(comparison: Comparison, titles: Mapping[str, str]) -> str:
    """Return what is concluded of each group: its sentences, or what each row is against its baseline."""
    sentences = {table.title: table.sentences for table in comparison_report(comparison, titles).tables}
    parts = []
    for group in comparison.groups:
        title = " · ".join(map(one_line, group.title))
        answers = [f"{row.name}: {answer(row)}" for row in group.rows if not row.is_baseline]
        lines = "<br>".join(map(words_of, sentences[title] or answers)) if title in sentences else ""
        parts += [f"<div><dt>{words_of(title)}</dt><dd>{lines}</dd></div>"] if lines else []
    return f'<dl class="verdicts">{"".join(parts)}</dl>' if parts else "<p>Each group has one cell.</p>"


def _compared(comparison: Comparison, titles: Mapping[str, str]) -> str:
    return f'<div class="tables">{fragment(comparison_report(comparison, titles)._replace(headline=()))}</div>'


def _charts(each: ShownProfile, draw: Callable[[str, Sequence[ChartMember]], str], *, has_keys: bool = False) -> str:
    """Return a chart of each group that tables show: with networks, operations are ceilings."""
    within = each.within
    groups, charts = [group for group in within.groups if not group.are_operations], list[str]()
    for group in groups or within.groups:
        members = members_of(each.run, group)
        size = LOOKS if has_keys else len(members)
        for first in range(0, len(members), size):
            part = members[first : first + size]
            number = f" ({first // size + 1} of {-(-len(members) // size)})" if len(members) > size else ""
            title = " · ".join(group.title) + number
            charts.append(figure(title, part if has_keys else (), draw(title, part)))
    return f'<div class="charts">{"".join(charts)}</div>' if any(charts) else ""


def _over_time(each: ShownProfile) -> str:
    charts = _charts(each, long_blocks_chart, has_keys=True)
    return f'<p class="soft">{OVER_TIME_READ}</p>{charts}' if charts else ""


def _method(each: ShownProfile) -> str:
    elsewhere = {*METHOD, *MACHINE, *LAUNCHES[1], *MEDIANS[1], *READINGS[1]}
    others = [table.title for table in each.shown.tables if table.title not in elsewhere]
    return each.folded("", METHOD) + each.folded("Everything else that was recorded", others)


def _identity(each: ShownProfile) -> str:
    revision, digest = each.profile.kit.revision, each.profile.digest
    words = [each.label, *each.shown.headline, f"revision {revision or 'unknown'}", f"SHA-256 {digest}"]
    return f"<p>{words_of(' · '.join(words))}</p>{each.folded('', MACHINE)}"
