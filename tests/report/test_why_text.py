import re

from profile_builder import build_identity, build_profile, six_cells
from rich.cells import cell_len

from kit.compare.why import explain
from kit.profile.identity import Container
from kit.report import json, why_text

EVIL = "x\x1b[2J\x07\r\n\u202e"
LIMITED = Container(engine="docker", cpu_limit=0.5, memory_limit_b=None, image=None)


def rendered(label="box", **fields):
    second = build_profile(six_cells(), id="run-2", identity=build_identity(container=LIMITED, **fields), seed=1)
    why = explain(("host", build_profile(six_cells())), (label, second))
    return why_text.render(why), why_text.render(why, color=True), why


def test_each_grade_has_its_section():
    bare, _, _ = rendered()
    blocks, warns, noted, state = (bare.index(title) for title in ("\nBlocks: ", "\nWarns: ", "\nNoted: ", "\nState: "))
    assert "nothing" in bare[blocks:warns]
    assert "· host has no CPU limit; box may use 0.5 of its 4 CPUs." in bare[warns:noted]
    assert "· Seed: 0 in host, 1 in box." in bare[noted:state]
    assert re.search(r"load, 1 minute +0.2 → 0.2 +0.2 → 0.2", bare[state:])


def test_no_line_is_wider_than_prose():
    assert max(map(cell_len, rendered()[0].split("\n"))) <= 120


def test_colour_says_the_same():
    bare, coloured, _ = rendered()
    assert [line.rstrip() for line in re.sub(r"\x1b\[[\d;]*m", "", coloured).split("\n")] == bare.split("\n")
    assert "\x1b" in coloured and "\x1b" not in bare


def test_names_reach_no_terminal_raw():
    bare, coloured, why = rendered(EVIL, kernel=EVIL, cpu_model=EVIL)
    for text in (bare, json.render(why)):
        assert not set(text) & set("\x1b\x07\r\u202e")
    assert not re.search(r"\x1b(?!\[[\d;]*m)", coloured)
