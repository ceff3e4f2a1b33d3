"""A request and the words that make it: each is the other's inverse; and a dry run is refused like the run."""

import re
import tracemalloc
from typing import get_type_hints

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit_process import invoke

from kit.cli import app, in_plain_words
from kit.cli.run_and_selftest import parse_request
from kit.devices import DEVICES
from kit.option import options_of
from kit.profile.fields import CPU_MAX, PRECISION_MAX_PCT
from kit.runner import time_left
from kit.suites.plan import plan_of
from kit.suites.run_request import ALLOWED_MAX_PCT, LABEL_MAX, OPTIONS, PRECISIONS, SECONDS_MAX, SEED_MAX, RunRequest
from kit.suites.suite import VARIANT_NAME, SuiteError, VariantTable

COUNTS = st.integers(1, CPU_MAX)
SECONDS = st.none() | st.floats(0, SECONDS_MAX, exclude_min=True)
NAMES = st.text("abcxyz019._+", min_size=1, max_size=8)
TEXTS = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20)
VALUES = TEXTS.filter(lambda text: not any(f",{kind}=" in text for kind in ("python", "image", "env")))


def listed(values):
    return st.lists(values, max_size=3).map(tuple)


def variants():
    env = st.dictionaries(NAMES, st.just("") | VALUES, max_size=2)
    fixed = st.fixed_dictionaries({"env": env}, optional={"python": VALUES}) | st.fixed_dictionaries({"image": VALUES})
    tables = fixed.map(lambda fields: VariantTable(**fields))
    named = st.dictionaries(st.from_regex(VARIANT_NAME, fullmatch=True), tables, max_size=3)
    return named.filter(lambda given: list(given.values()) != [VariantTable()])


# A field that is added is covered by its type.
TYPES = {
    str: st.just("") | TEXTS,
    int: COUNTS,
    bool: st.booleans(),
    float | None: SECONDS,
    int | None: st.none() | COUNTS,
    tuple[str, ...]: listed(NAMES),
    tuple[int, ...]: listed(COUNTS),
}
FIELDS = {
    "suite": st.just("") | TEXTS.filter(lambda text: not text.startswith("-")),
    "programs": listed(TEXTS),
    "devices": listed(st.sampled_from(list(DEVICES))),
    "tasks": listed(st.sampled_from(["train", "infer", "fit"])),
    "parameters": st.dictionaries(NAMES, st.lists(COUNTS, min_size=1, max_size=3).map(tuple), max_size=2),
    "better": st.sampled_from(["less", "more"]),
    "precisions": listed(st.sampled_from(PRECISIONS)),
    "feeds": listed(st.sampled_from(["device", "host"])),
    "variants": variants(),
    "allowed_pct": st.none() | st.floats(0, ALLOWED_MAX_PCT),
    "precision_pct": SECONDS.filter(lambda pct: pct is None or pct <= PRECISION_MAX_PCT),
    "energy_s": st.just(0.0) | SECONDS,
    "seed": st.integers(0, SEED_MAX),
    "clock": st.sampled_from(["auto", "monotonic_raw", "tsc", "cntvct"]),
    "label": st.text("ab-=, ä", max_size=LABEL_MAX).map(lambda text: " ".join(text.split())),
    "unit": st.text("ab-=, ä", max_size=LABEL_MAX).map(lambda text: " ".join(text.split())),
}


def possible(fields):
    """What no command line can ask for together is not asked for."""
    length = {"rounds": None} if fields["precision_pct"] is not None else {}
    return RunRequest(**fields | length | ({} if fields["out"] else {"resume": False}))


HINTS = get_type_hints(RunRequest)
DRAWN = {name: FIELDS[name] if name in FIELDS else TYPES[kind] for name, kind in HINTS.items()}
REQUESTS = st.fixed_dictionaries(DRAWN).map(possible)


@settings(max_examples=200, deadline=None)
@given(REQUESTS)
def test_the_words_of_a_request_make_it_again(request):
    assert vars(parse_request(request.to_argv())) == vars(request)


def test_a_request_of_nothing_has_no_words_and_every_field_its_option():
    assert RunRequest().to_argv() == [] and vars(parse_request([])) == vars(RunRequest())
    assert OPTIONS.keys() == {*options_of(RunRequest), "no_energy"}


@pytest.mark.parametrize("table", [VariantTable(slowdown_pct=3.0), VariantTable(env={"A": "1,env=B=2"})])
def test_what_only_a_file_can_say_is_refused(table):
    with pytest.raises(SuiteError, match="give it in the suite's file"):
        RunRequest(variants={"x": table}).to_argv()


def commands(group=app, path=()):
    """Every command of the kit, with the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield from commands(command, (*path, name)) if isinstance(command, click.Group) else [((*path, name), command)]


NUMBERS = [
    (path, option.opts[-1])
    for path, command in commands()
    for option in command.params
    for kind in (option.type, *getattr(option.callback, "args", ()))
    if isinstance(kind, click.types.IntParamType | click.types.FloatParamType)
]


@pytest.mark.parametrize("number", ["99999999999999999999", "-99999999999999999999"])
@pytest.mark.parametrize(("path", "option"), NUMBERS, ids=[" ".join([*path, option]) for path, option in NUMBERS])
def test_every_number_has_limits_that_are_named_at_once(path, option, number):
    ended = invoke(*path, option, number)
    (low, high) = re.search(r"is out of range; give (?:more than )?(\S+) to (\S+)$", refused_line(ended)).groups()
    assert float(low) >= 0 and float(high) < 2**53
    assert "e+" not in high and not high.endswith(".0"), "as it is typed"


def refused_line(ended):
    assert ended.exception is not None
    return in_plain_words(ended.exception)


def test_a_million_rounds_cost_a_dry_run_nothing(monkeypatch):
    looked = []
    time_of_round = time_left._time_of_round
    monkeypatch.setattr(time_left, "_time_of_round", lambda *given: looked.append(1) or time_of_round(*given))
    seconds = {}
    for rounds in (1, 1000, 1_000_000):
        plan = plan_of(RunRequest(suite="quick", rounds=rounds), print)
        used = plan.suite
        tracemalloc.start()
        left = time_left.estimate(plan.cells, plan.groups, used.process_axes, used.plan, used.rounds)
        peak_b = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        seconds[rounds] = left.seconds
        assert peak_b < 1 << 20
    assert len(looked) <= 6, "two stretches of rounds that are alike"
    assert seconds[1_000_000] == pytest.approx(1000 * seconds[1000]) == pytest.approx(1_000_000 * seconds[1])
