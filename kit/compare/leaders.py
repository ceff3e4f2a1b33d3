"""Who is the fastest of a group, said only where verdicts support it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kit.compare.pairs import Pairs
from kit.compare.rows import Leaders
from kit.stats.verdict import ALPHA


def leaders_of(names: Sequence[str], pairs: Pairs, keys: Mapping[str, str]) -> Leaders | None:
    """Return the fastest; None where no verdict says so.

    Args:
        names: of the rows that have a number, fastest first.
        pairs: of the group.
        keys: of the rows' cells, by name.
    """
    if not names:
        return None
    first, *others = names
    against = {name: pairs.versus(keys[name], keys[first]) for name in others}
    # One that changes between two modes is slower where both are slower.
    in_both = {
        name: versus.modes
        for name, versus in against.items()
        if versus.modes and versus.modes[0] > 1 and versus.contention_pct is None
    }
    slower = [
        (name, versus.ratio if versus.modes is None else None)
        for name, versus in against.items()
        if versus.verdict == "slower" or (name in in_both and (versus.p_adjusted or 0.0) <= ALPHA)
    ]
    if not slower or any(versus.verdict == "faster" for versus in against.values()):
        return None
    modes = [(name, *ratios) for name, ratios in in_both.items() if name not in dict(slower)]
    tied = [name for name in against if name not in dict(slower) and name not in in_both]
    return Leaders(tied=[first, *tied], slower_than_fastest=slower, modes=modes)
