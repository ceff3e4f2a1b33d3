"""Prices that whoever reads a comparison gives: of the machine's hour, and of a kWh. A million samples then cost

    step time / batch x price of an hour + joules a sample x price of a kWh      in the currency of the prices

A price is for every row, or for those of one side, profile or device that it names: ``gpu=2.10``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kit.compare.metrics import METRICS, together
from kit.compare.rows import Comparison, Note, Row
from kit.errors import KitError
from kit.profile.fields import reason

# The name of a price that names no side.
EVERY = ""
MILLION, NS_PER_HOUR, J_PER_KWH = 1_000_000, 3.6e12, 3.6e6


class Prices(NamedTuple):
    """By the name of a side, profile or device, or EVERY; one that is named goes before."""

    hour: Mapping[str, float]
    kwh: Mapping[str, float]


def priced(comparison: Comparison, prices: Prices) -> None:
    """Give each cell of a comparison its `cost_per_million`, and the comparison a note.

    Raises:
        KitError: a name is nobody's, or energy has a price and nothing measured joules.
    """
    hour, kwh = ({name.removesuffix(".json"): price for name, price in given.items()} for given in prices)
    known = dict.fromkeys(name for row in comparison.rows for name in _names(row))
    for name in (*hour, *kwh):
        if name not in (EVERY, *known):
            listed = ", ".join(known)
            raise KitError(f"a price names {name!r}, which is no side, profile or device; choose from {listed}")
    with_price = [row for row in comparison.rows if _price(kwh, row) is not None]
    if kwh and all(row.value("energy_per_sample_j") is None for row in with_price):
        raise KitError(
            "--price-kwh needs joules, and no row has any; leave it out to see why, or give a log by --meter FILE"
        )
    for row in comparison.rows:
        per_hour, per_kwh = _price(hour, row), _price(kwh, row)
        # A cost without a part that others' costs have would look cheaper.
        lacks_a_price = (hour and per_hour is None) or (kwh and per_kwh is None)
        costs = list[float | None]()
        for values in row.values_of_runs:
            time_ns, joules_j = values.get("sample_ns"), values.get("energy_per_sample_j")
            is_known = not lacks_a_price and time_ns is not None and (joules_j is not None or not kwh)
            time_cost = (time_ns or 0.0) / NS_PER_HOUR * (per_hour or 0.0)
            energy_cost = (joules_j or 0.0) / J_PER_KWH * (per_kwh or 0.0)
            costs.append(MILLION * (time_cost + energy_cost) if is_known else None)
        row.values["cost_per_million"] = together(METRICS["cost_per_million"], costs)
    code = "cost" if hour and kwh else "cost_of_time" if hour else "cost_of_energy"
    amounts = [[f"{price:g}{f' ({name})' if name else ''}" for name, price in given.items()] for given in (hour, kwh)]
    comparison.notes.append(Note(what=reason(code, hour=", ".join(amounts[0]), kwh=", ".join(amounts[1]))))


def _price(given: Mapping[str, float], row: Row) -> float | None:
    return next((given[name] for name in (*_names(row), EVERY) if name in given), None)


def _names(row: Row) -> list[str]:
    return [name for name in (row.side, *row.profiles, row.cell.device) if name]
