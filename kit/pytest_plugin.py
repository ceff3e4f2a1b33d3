"""A pytest plugin: its fixture `steadykit` fails a test with the verdict's sentence if a program got slower.

def test_the_new_kernel_is_no_slower(steadykit):
    steadykit.compare({"old": "kernels.py:old", "new": "kernels.py:new"}, rounds=8, at_most_slower_pct=5)

pytest imports this file in each session, so that it imports what measures only where a test measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kit.api.profiles import Compared


class Steadykit:
    """What the fixture gives a test; profiles lie in the test's own folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def compare(
        self,
        programs: Mapping[str, str | Callable[..., Any]],
        *,
        at_most_slower_pct: float = 5.0,
        **options: Any,  # noqa: ANN401 - those of `kit.measure`
    ) -> Compared:
        """Measure programs, the first of which is the baseline, and end the test if one may be slower than allowed.

        The test fails if a program is shown to be slower by more than `at_most_slower_pct`, or cannot be measured.
        It is skipped if the rounds do not show which it is.

        Args:
            programs: by name, as `kit.measure` takes them.
            at_most_slower_pct: that each may be slower than the first.
            options: more arguments of `kit.measure`, such as rounds, batch and device.

        Returns:
            The comparison, if all are shown to be fast enough.
        """
        __tracebackhide__ = True
        import kit
        from kit.compare.fail_if_slower import limited_rows
        from kit.report.verdicts_in_words import ab_answers, answer

        if len(programs) < 2 and not options.get("variants"):  # noqa: PLR2004 - one is compared with another
            pytest.fail("steadykit.compare() got one program; give the one to compare with first", pytrace=False)
        refused = ""
        try:
            profiles = kit.measure(programs, **{"out": self._folder} | options)
            compared = profiles.compare()
        except kit.KitError as error:
            refused = str(error)
        if refused:  # not within `except`, whose exception pytest would show, too
            pytest.fail(refused, pytrace=False)
        comparison, read_more = compared.comparison, f"kit compare {profiles.paths[0]} --why"
        failed = [f"{row.name}: {answer(row)}" for row in comparison.rows if not row.has_number]
        if failed:
            pytest.fail("\n".join([*failed, read_more]), pytrace=False)
        if kept_apart := [f"{row.name}: {answer(row)}" for row in comparison.rows if row.kept_apart]:
            pytest.fail("\n".join([*kept_apart, read_more]), pytrace=False)
        limited = limited_rows(comparison, at_most_slower_pct)
        if not limited:
            pytest.fail("nothing was compared; give two programs", pytrace=False)
        words = ab_answers(comparison, at_most_slower_pct, None)
        if len(words) != len(limited):
            words = [f"{row.name}: {answer(row)}" for _, row, _ in limited]
        judged = [(shown, line) for (_, _, shown), line in zip(limited, words, strict=True)]
        allowed = f"at most {at_most_slower_pct:g} % slower is allowed"
        if slower := [line for shown, line in judged if shown == "slower"]:
            pytest.fail("\n".join([*slower, f"{allowed}; {read_more}"]), pytrace=False)
        if unresolved := [line for shown, line in judged if shown == "unresolved"]:
            pytest.skip("; ".join([*unresolved, allowed]))
        return compared


@pytest.fixture
def steadykit(tmp_path: Path) -> Steadykit:
    """Return what measures programs and fails the test if one is slower than the first."""
    return Steadykit(tmp_path)
