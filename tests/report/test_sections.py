"""Aligned lines that go on below where they are too wide."""

from kit.report.sections import grid

LONG = "what stands in the way " * 6


def test_the_last_column_wraps_under_itself():
    lines = grid([["a", "no", LONG], ["bb", "yes", "short"]], width=60)
    assert max(map(len, lines)) <= 60
    assert [line[:9] for line in lines] == ["a   no   ", *[" " * 9] * (len(lines) - 2), "bb  yes  "]
    assert " ".join(" ".join(lines[:-1]).split()) == f"a no {LONG.strip()}"


def test_where_it_would_be_too_narrow_it_goes_below():
    head, *below = grid([["a" * 30, LONG]], width=60)
    assert head == "a" * 30
    assert all(line.startswith("    w") or (line.startswith("    ") and len(line) <= 60) for line in below)
    assert " ".join(" ".join(below).split()) == LONG.strip()
