"""Canonical JSON, and digests over it.

Canonical: UTF-8, object keys sorted by code point, no white space, integers as they are, floats in the shortest form
that reads back the same. (RFC 8785 is not used: it cannot hold integers above 2^53, which nanosecond stamps pass.)
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec


def canonical_json(value: Any) -> bytes:  # noqa: ANN401 - any JSON value
    """Encode a JSON value or a structure of ours."""
    return msgspec.json.encode(value, order="sorted")


def sha256_of(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return the SHA-256 over the canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def profile_digest(profile: dict[str, Any]) -> str:
    """Return the digest of a decoded profile: over everything but its own `digest` field."""
    return sha256_of({name: value for name, value in profile.items() if name != "digest"})


def is_intact(data: bytes, digest: str) -> bool:
    """Return whether the bytes of a profile are those over which the digest within them was computed.

    A file as it was written is canonical: without its digest it is what was hashed. The contents of a file with another
    layout are hashed again.
    """
    rest = data.removesuffix(b"\n").replace(b'"digest":"%b",' % digest.encode(), b"", 1)
    return hashlib.sha256(rest).hexdigest() == digest or profile_digest(msgspec.json.decode(data)) == digest
