"""What a million samples cost, at prices that whoever reads a comparison gives: of the machine's hour, of a kWh.

    cost = step time / batch x price of an hour + joules a sample x price of a kWh      no currency: the prices'

A price is for every row, or for those of one side, profile or device that it names: ``gpu=2.10``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from kit.compare.rows import Comparison, Cost, Note, Row
from kit.errors import KitError
from kit.profile.reason import reason

MILLION = 1_000_000
NS_PER_HOUR = 3.6e12
J_PER_KWH = 3.6e6
# Of a price that names nobody.
EVERY = ""


class Prices(NamedTuple):
    """By the name of a side, profile or device, or EVERY; one that is named goes before."""

    hour: Mapping[str, float]
    kwh: Mapping[str, float]


def priced(comparison: Comparison, prices: Prices) -> Comparison:
    """Return the comparison with the cost of each row that has a price and what it is of.

    Raises:
        KitError: a name is nobody's, or energy has a price and nothing measured joules.
    """
    prices = Prices(*({name.removesuffix(".json"): price for name, price in given.items()} for given in prices))
    rows = [row for group in comparison.groups for row in group.rows]
    known = dict.fromkeys(name for row in rows for name in _names(row))
    for name in (name for given in prices for name in given if name not in (EVERY, *known)):
        raise KitError(f"a price names {name!r}, which is no side, profile or device; choose from {', '.join(known)}")
    if prices.kwh and all(
        row.numbers.energy_per_sample_j is None for row in rows if _price(prices.kwh, row) is not None
    ):
        raise KitError("--price-kwh needs joules, but none were measured; see `kit doctor`, or give --meter FILE")
    groups = [
        replace(group, rows=[replace(row, cost=_cost(row, prices)) for row in group.rows])
        for group in comparison.groups
    ]
    values = {"hour": _told(prices.hour), "kwh": _told(prices.kwh)}
    code = "cost" if prices.hour and prices.kwh else "cost_of_time" if prices.hour else "cost_of_energy"
    return replace(comparison, groups=groups, notes=[*comparison.notes, Note(what=reason(code, **values))])


def _cost(row: Row, prices: Prices) -> Cost | None:
    """Return a row's cost; none where it lacks what one of its prices is of."""
    numbers, hour, kwh = row.numbers, _price(prices.hour, row), _price(prices.kwh, row)
    time_ns, joules = numbers.sample_ns, numbers.energy_per_sample_j
    # A cost without a part that others' costs have would look cheaper.
    lacks_a_price = (prices.hour and hour is None) or (prices.kwh and kwh is None)
    if time_ns is None or lacks_a_price or (joules is None and kwh is not None):
        return None
    of_time = time_ns / NS_PER_HOUR * MILLION * (hour or 0.0)
    of_energy = (joules or 0.0) / J_PER_KWH * MILLION * (kwh or 0.0)
    below, above = _shares(row) if hour is not None else (0.0, 0.0)
    error = _error_share(row) if kwh is not None else 0.0
    low = high = None
    if below is not None and above is not None and error is not None:
        low, high = of_time * (1 + below) + of_energy * (1 - error), of_time * (1 + above) + of_energy * (1 + error)
    return Cost(per_million=of_time + of_energy, low=low, high=high, of_time=of_time, of_energy=of_energy)


def _shares(row: Row) -> tuple[float, float] | tuple[None, None]:
    """Return how far the ends of the step time's interval are from it, in shares of it."""
    step_ns, interval_ns = row.numbers.step_ns, row.numbers.step_interval_ns
    if step_ns is None or interval_ns is None:
        return None, None
    return interval_ns[0] / step_ns - 1, interval_ns[1] / step_ns - 1


def _error_share(row: Row) -> float | None:
    return None if row.numbers.energy is None else row.numbers.energy.error_share


def _price(given: Mapping[str, float], row: Row) -> float | None:
    return next((given[name] for name in (*_names(row), EVERY) if name in given), None)


def _names(row: Row) -> Iterable[str]:
    return (name for name in (row.side, *row.profiles, row.cell.device) if name)


def _told(given: Mapping[str, float]) -> str:
    return ", ".join(f"{price:g}" if name == EVERY else f"{price:g} ({name})" for name, price in given.items())
