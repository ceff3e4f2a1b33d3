"""How long a GPU's sensors lag, as `kit selftest --device gpu` measured it there."""

from __future__ import annotations

import json
import os
from pathlib import Path

from kit.environment import GPU_FILE
from kit.errors import KitError

# Planted lags of 0 to 0.5 s came back to 0.04 s (docs/how-to/selftest.md).
LAG_ERROR_NS = 50_000_000
# A reading that is early is as wrong by it as one that is late.
FIELDS = ("lag_low_ns", "lag_high_ns")

Lags = dict[tuple[str, str], int]  # (SHA-256 of a board's UUID, what its sensor tells) -> nanoseconds at most


def measured_lags() -> Lags:
    """Return the largest lag that any load showed of each sensor, with the error of its measurement; empty: no file.

    Raises:
        KitError: the variable names what is no such file.
    """
    path = os.environ.get(GPU_FILE)
    if not path:
        return {}
    lags: Lags = {}
    try:
        record = json.loads(Path(path).read_text())
        facts = record["identity"]["facts"]
        uuids = {
            facts[f"{gpu}.device_id"]: facts[name]
            for name in facts
            for gpu, ending, _ in [name.partition(".uuid_sha256")]
            if ending and f"{gpu}.device_id" in facts
        }
        for response in record["responses"]:
            known_ns = [abs(response[field]) for field in FIELDS if response.get(field) is not None]
            uuid = uuids.get(response.get("device_id"))
            if known_ns and uuid:
                key = (uuid, response["sensor"].rpartition(".")[2])
                lags[key] = max(lags.get(key, 0), max(known_ns) + LAG_ERROR_NS)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a result of `kit selftest --device gpu`"
        raise KitError(f"{GPU_FILE}={path}: {why}; give the file of such a self-test, or unset {GPU_FILE}") from None
    return lags
