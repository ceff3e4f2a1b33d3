"""Integers in a profile: JSON has no largest one, arithmetic with them has.

A longer one turns into an infinite float, or into an error, wherever it is divided; 2^63 nanoseconds are 292 years.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
