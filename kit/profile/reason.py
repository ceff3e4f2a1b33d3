"""Why something is null, noted or failed: a code with values. `kit.report.sentences` writes the sentences."""

from __future__ import annotations

import msgspec

from kit.profile.limits import Int64

Value = Int64 | float | str


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """A code, such as ``cgroup_throttled``, and the values that go with it, units in their names."""

    code: str
    values: dict[str, Value] = {}


def reason(code: str, **values: Value) -> Reason:
    """``reason("too_short", window_s=2.0, needed_s=10.0)``."""
    return Reason(code=code, values=values)
