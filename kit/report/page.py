"""A page: one HTML file without scripts and without anything to load, made of the reports that commands print.

verdicts ─ side by side ─ groups ─ rounds ─ phases ─ energy ─ findings ─ published figures ─ method ─ identity
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kit.compare.comparison import Comparison
from kit.profile.schema import Profile
from kit.report.comparison import comparison_report
from kit.report.headline import headline
from kit.report.html import STYLE, fragment, words_of
from kit.report.page_charts import (
    DEFINITIONS,
    LOOKS,
    PHASES,
    Member,
    bars,
    blocks_chart,
    figure,
    members_of,
    phase_keys,
    timeline,
)
from kit.report.plain import one_line
from kit.report.profile import profile_report
from kit.report.quantity import moment
from kit.report.table import Report, Table, words_table
from kit.report.verdict_words import answer
from kit.workloads.operations import is_operation

# Colors of text have a contrast of 4.5 and more on their background, others of 3. `kit plot` has the same three
# frameworks' colors, darker or lighter where one of these backgrounds needs it.
# Phases that follow each other have hues that are far apart.
FILLS = "".join(f".p{index}{{fill:hsl({index * 137 % 360} var(--fill))}}" for index in range(len(PHASES)))
INKS = "".join(f".c{look}{{fill:var(--c{look});stroke:var(--c{look})}}" for look in range(LOOKS))
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
# Tables of `kit show` by the section whose numbers they have.
LAUNCHES = ("Launches", "Fits", "Classes, over the repeats of a fit")
MEDIANS = ("Phases, median over rounds",)
ENERGY = ("Energy", "Sampled, mean and max", "Sensors left out")
OPEN = ("Suite", "Clock", "Sensors")
MACHINE = ("Machine", "State")
# What a reader has to know before the charts of a section.
INTRODUCTIONS = {
    "Rounds and blocks": "A mark is one block of steps, a line the median of a cell's blocks in one round. "
    "Hollow marks do not count, because other programs disturbed them or the launch failed.",
    "Phases": "Each row is one launch of one round, from left to right: its phases, and its blocks as solid bars. "
    "The cells of a group take turns.",
}


class Measured(NamedTuple):
    """A profile as a page shows it."""

    label: str
    profile: Profile
    within: Comparison  # its cells against each other


def page(
    profiles: Sequence[Measured],
    together: Comparison | str,
    audit: Report,
    published: Sequence[Report],
    titles: Mapping[str, str],
) -> str:
    """Return the page.

    Args:
        profiles: one or more.
        together: all of them, as `kit compare` compares them; or why it does not.
        audit: of all of them.
        published: tables of suites, with figures from documents beside those measured.
        titles: of each backend, as people write it.
    """
    judged = [each.within for each in profiles] if isinstance(together, str) else [together]
    beside = f"<p>Not compared with each other: {words_of(together)}.</p>" if isinstance(together, str) else ""
    if not isinstance(together, str) and together.kind != "cells":
        beside = _compared(together, titles)
    tables = [profile_report(each.profile).tables for each in profiles]

    def for_each(show: Callable[[Measured, Sequence[Table]], str]) -> str:
        shown = [(each.label, show(each, listed)) for each, listed in zip(profiles, tables, strict=True)]
        heads = (f"<h3>{words_of(label)}</h3>" if len(profiles) > 1 and html else "" for label, html in shown)
        return "".join(head + html for head, (_, html) in zip(heads, shown, strict=True))

    sections = {
        "Verdicts": "".join(_verdicts(comparison, titles) for comparison in judged),
        "Side by side": beside,
        "Groups": for_each(lambda each, _: _compared(each.within, titles)),
        "Rounds and blocks": for_each(
            lambda each, listed: _charts(each, blocks_chart, has_keys=True) + _details("Every launch", listed, LAUNCHES)
        ),
        "Phases": for_each(
            lambda each, listed: (
                phase_keys(each.profile) + _charts(each, timeline) + _details("Phases as a table", listed, MEDIANS)
            )
        ),
        "Energy and utilization": for_each(
            lambda each, listed: _charts(each, bars) + _details("Every reading", listed, ENERGY)
        ),
        "Findings": fragment(audit._replace(hint="")),
        "Published figures": "".join(map(fragment, published)),
        "How it was measured": for_each(lambda _, listed: _measured(listed)),
        "Identity": for_each(_identity),
    }
    ids = {name: name.lower().replace(" ", "-") for name, html in sections.items() if html}
    links = "".join(f'<li><a href="#{key}">{name}</a></li>' for name, key in ids.items())
    body = "".join(
        f'<section aria-labelledby="{key}"><h2 id="{key}">{name}</h2>'
        f'<p class="soft">{INTRODUCTIONS.get(name, "")}</p>{sections[name]}</section>'
        for name, key in ids.items()
    )
    name = words_of(" and ".join(dict.fromkeys(each.profile.suite.name for each in profiles)))
    lines = [line for comparison in judged for line in headline(comparison, titles, wide=True)]
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{name} · Steadykit</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{STYLE}{FILLS}{INKS}{PAGE_STYLE}</style></head><body>{DEFINITIONS}"
        f'<a class="skip" href="#main">Skip to the verdicts</a><header><h1>{name}</h1>'
        f'<p class="soft">{"<br>".join(map(words_of, lines))}</p>'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header>'
        f'<main id="main" tabindex="-1">{body}</main></body></html>\n'
    )


def _verdicts(comparison: Comparison, titles: Mapping[str, str]) -> str:
    """Return what is concluded of each group: its sentences, or what each row is against its baseline."""
    said = {table.title: table.sentences for table in comparison_report(comparison, titles).tables}
    parts = []
    for group in comparison.groups:
        title = " · ".join(map(one_line, group.title))
        answers = [f"{row.name}: {answer(row)}" for row in group.rows if not row.is_baseline]
        if lines := (said[title] or answers) if title in said else []:
            parts.append(f"<div><dt>{words_of(title)}</dt><dd>{'<br>'.join(map(words_of, lines))}</dd></div>")
    return (
        f'<dl class="verdicts">{"".join(parts)}</dl>'
        if parts
        else "<p>There is nothing to compare: each group has one cell.</p>"
    )


def _compared(comparison: Comparison, titles: Mapping[str, str]) -> str:
    return f'<div class="tables">{fragment(comparison_report(comparison, titles)._replace(headline=()))}</div>'


def _charts(each: Measured, draw: Callable[[str, Sequence[Member]], str], *, has_keys: bool = False) -> str:
    """Return a chart of each group that tables show: with networks, operations are ceilings."""
    groups = [group for group in each.within.groups if not is_operation(group.rows[0].cell)] or each.within.groups
    charts = list[str]()
    for group in groups:
        title, members = " · ".join(group.title), members_of(group)
        size = LOOKS if has_keys else len(members)
        for first in range(0, len(members), size):
            part = members[first : first + size]
            name = title if size >= len(members) else f"{title} ({first // size + 1} of {-(-len(members) // size)})"
            charts.append(figure(name, part if has_keys else (), draw(name, part)))
    return f'<div class="charts">{"".join(charts)}</div>' if any(charts) else ""


def _details(summary: str, tables: Sequence[Table], titles: Sequence[str]) -> str:
    """Return those tables that are there, folded away."""
    listed = [table for table in tables if table.title in titles]
    shown = fragment(Report("", (), listed))
    return f"<details><summary>{summary}</summary>{shown}</details>" if listed else ""


def _measured(tables: Sequence[Table]) -> str:
    """Return how it was measured: suite, clock and sensors; folded away what else was recorded."""
    others = [table.title for table in tables if table.title not in {*OPEN, *LAUNCHES, *MEDIANS, *ENERGY, *MACHINE}]
    shown = fragment(Report("", (), [table for table in tables if table.title in OPEN]))
    return shown + _details("Everything else that was recorded", tables, others)


def _identity(each: Measured, tables: Sequence[Table]) -> str:
    """Return which profile it is and where it ran."""
    profile = each.profile
    rows = {
        "profile": f"{each.label} · {profile.id}",
        "label": profile.label,
        "created": moment(profile.created),
        "kit": " · ".join(filter(None, [profile.kit.version, profile.kit.revision])),
        "schema": profile.schema,
        "SHA-256": profile.digest,
    }
    listed = [words_table("Profile", [row for row in rows.items() if row[1]])]
    return fragment(Report("", (), [*listed, *(table for table in tables if table.title in MACHINE)]))
