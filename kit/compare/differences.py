"""What is not the same in all of several profiles, named and graded."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from kit.compare.fact import UNKNOWN, Fact
from kit.compare.facts import NONE, identity_facts, run_facts
from kit.compare.gate import LabelledProfile, Pairs
from kit.compare.graded import GradedDifference
from kit.compare.grades import GRADES, ORDER, Grade, grade_of
from kit.compare.state_facts import NEGLIGIBLE, ONLY_WHERE_KNOWN, state_facts
from kit.profile.hardware import Hardware, hardware_of, same_hardware

Name = tuple[str, str]  # kind and name of a fact


class _Seen(NamedTuple):
    """One fact in all the profiles that have it."""

    holders: dict[str, list[int]]  # value in words -> places of the profiles that have it
    amounts: list[float]


def differences(profiles: Sequence[LabelledProfile], baseline: str, pairs: Pairs) -> list[GradedDifference]:
    """Gravest first, then in the order of the grades' table.

    Args:
        profiles: distinct labels with their profiles.
        baseline: the label of the one that the others are compared with.
        pairs: from `kit.compare.gate.pairs_of`, for what differs between cells.
    """
    own = next(profile for label, profile in profiles if label == baseline)
    like = all(same_hardware(profile.identity, own.identity) for _, profile in profiles)
    backends = {result.cell.backend for _, profile in profiles for result in profile.cells}
    found = [*_of_cells(pairs, baseline), *_of_profiles(profiles, backends, like_hardware=like)]
    kinds = list(GRADES)
    return sorted(found, key=lambda one: (ORDER.index(one.grade), kinds.index(one.kind)))


def machines(profiles: Sequence[LabelledProfile]) -> int:
    """How many different machines the profiles were taken on, as far as their identities tell."""
    # Thousands of profiles share a few identities, each read once.
    identities = {id(profile.identity): profile.identity for _, profile in profiles}.values()
    hosts_of: dict[Hardware, set[str]] = {}
    for one in identities:
        hosts = hosts_of.setdefault(hardware_of(one), set())
        # A container's host name is drawn anew for each.
        if one.container.engine is None:
            hosts.add(one.hostname_sha256)
    return sum(max(1, len(hosts)) for hosts in hosts_of.values())


def _of_cells(pairs: Pairs, baseline: str) -> list[GradedDifference]:
    """Each kind once for each grade, whichever cells it is in."""
    values: dict[tuple[str, Grade], dict[str, dict[str, None]]] = {}
    for (label, _), found in pairs.items():
        for one in found:
            own = values.setdefault((one.kind, one.grade), {})
            own.setdefault(one.theirs, {})[baseline] = None
            own.setdefault(one.ours, {})[label] = None
    return [
        GradedDifference(
            grade=grade,
            kind=kind,
            name=kind,
            values={value: list(labels) for value, labels in own.items()},
            effect=GRADES[kind].effect,
        )
        for (kind, grade), own in values.items()
    ]


def _of_profiles(
    profiles: Sequence[LabelledProfile], backends: Collection[str], *, like_hardware: bool
) -> list[GradedDifference]:
    labels = [label for label, _ in profiles]
    return [
        GradedDifference(
            grade=grade_of(kind, like_hardware=like_hardware),
            kind=kind,
            name=name,
            values=_values(own.holders, labels, _absent(kind)),
            effect=GRADES[kind].effect,
        )
        for (kind, name), own in _gathered(profiles, backends).items()
        if _differs(kind, own, len(profiles))
    ]


def _gathered(profiles: Sequence[LabelledProfile], backends: Collection[str]) -> dict[Name, _Seen]:
    seen: dict[Name, _Seen] = {}
    # Thousands of profiles may share one machine and one suite: what these say is taken once for all of them.
    alike: dict[tuple[object, ...], list[int]] = {}
    for place, (_, profile) in enumerate(profiles):
        clock = None if profile.clock is None else profile.clock.source
        parts = map(id, (profile.identity, profile.suite, profile.sensors))
        alike.setdefault((*parts, clock, profile.kit, profile.schema), []).append(place)
    for places in alike.values():
        profile = profiles[places[0]][1]
        for one in (*identity_facts(profile.identity, backends), *run_facts(profile)):
            _add(seen, one, places)
    for place, (_, profile) in enumerate(profiles):
        for one in state_facts(profile):
            _add(seen, one, (place,))
    return seen


def _add(seen: dict[Name, _Seen], one: Fact, places: Sequence[int]) -> None:
    own = seen.setdefault((one.kind, one.name), _Seen({}, []))
    own.holders.setdefault(one.shown, []).extend(places)
    if one.amount is not None:
        own.amounts.append(one.amount)


def _differs(kind: str, own: _Seen, profiles: int) -> bool:
    """A quantity that some did not record differs only between those that did."""
    if kind in NEGLIGIBLE:
        return len(own.amounts) > 1 and max(own.amounts) - min(own.amounts) > NEGLIGIBLE[kind]
    if kind in ONLY_WHERE_KNOWN:
        return len(own.holders) > 1
    return len(own.holders) > 1 or sum(map(len, own.holders.values())) < profiles


def _absent(kind: str) -> str | None:
    """What to say of profiles without it; null: nothing. A quantity that was not recorded is not known to be none."""
    if kind in ONLY_WHERE_KNOWN:
        return None
    return UNKNOWN if kind in NEGLIGIBLE else NONE


def _values(holders: dict[str, list[int]], labels: Sequence[str], absent: str | None) -> dict[str, list[str]]:
    """Value -> labels, in the order of the profiles; `absent` for those that lack it, where it is given."""
    having = {place for places in holders.values() for place in places}
    without = [place for place in range(len(labels)) if absent is not None and place not in having]
    values = holders if absent is None or not without else {**holders, absent: [*holders.get(absent, []), *without]}
    in_order = sorted((sorted(places), value) for value, places in values.items())
    return {value: [labels[place] for place in places] for places, value in in_order}
