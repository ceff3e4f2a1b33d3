"""Prices that whoever reads a comparison gives: of the machine's hour, and of a kWh. A million samples then cost

    step time / batch x price of an hour + joules a sample x price of a kWh      in the currency of the prices

A price is for every row, or for those of one side, profile or device that it names: ``gpu=2.10``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kit.compare.metrics import cost_per_million
from kit.compare.rows import Comparison, Note, Row
from kit.errors import KitError
from kit.profile.reason import reason

# The name of a price that names no side.
EVERY = ""


class Prices(NamedTuple):
    """By the name of a side, profile or device, or EVERY; one that is named goes before."""

    hour: Mapping[str, float]
    kwh: Mapping[str, float]


def priced(comparison: Comparison, prices: Prices) -> None:
    """Give each row the prices that are for it, and the comparison a note; `cost_per_million` is then known.

    Raises:
        KitError: a name is nobody's, or energy has a price and nothing measured joules.
    """
    hour, kwh = ({name.removesuffix(".json"): price for name, price in given.items()} for given in prices)
    known = dict.fromkeys(name for row in comparison.rows for name in _names(row))
    for name in (name for given in (hour, kwh) for name in given if name not in (EVERY, *known)):
        raise KitError(f"a price names {name!r}, which is no side, profile or device; choose from {', '.join(known)}")
    asked = [row for row in comparison.rows if kwh and _price(kwh, row) is not None]
    if kwh and all(row.value("energy_per_sample_j") is None for row in asked):
        raise KitError("--price-kwh needs joules, but none were measured; see `kit doctor`, or give --meter FILE")
    for row in comparison.rows:
        of_row: dict[object, float | None] = {"price of an hour": _price(hour, row), "price of a kWh": _price(kwh, row)}
        # A cost without a part that others' costs have would look cheaper.
        lacks_a_price = any(given and price is None for given, price in zip((hour, kwh), of_row.values(), strict=True))
        for sample in row.samples:
            sample.computed |= of_row
            sample.computed.pop("cost_per_million", None)
            if lacks_a_price or sample.together is None:
                sample.computed["cost_per_million"] = None if lacks_a_price else cost_per_million(sample)
    values = {"hour": _listed(hour), "kwh": _listed(kwh)}
    code = "cost" if hour and kwh else "cost_of_time" if hour else "cost_of_energy"
    comparison.notes.append(Note(what=reason(code, **values)))


def _price(given: Mapping[str, float], row: Row) -> float | None:
    return next((given[name] for name in (*_names(row), EVERY) if name in given), None)


def _names(row: Row) -> list[str]:
    return [name for name in (row.side, *row.profiles, row.cell.device) if name]


def _listed(given: Mapping[str, float]) -> str:
    return ", ".join(f"{price:g}" if name == EVERY else f"{price:g} ({name})" for name, price in given.items())
