"""Canonical JSON, and the digest over it.

Canonical: UTF-8, object keys sorted by code point, no white space, integers as they are, floats in the shortest form
that reads back the same. (RFC 8785 is not used: it cannot hold integers above 2^53, which nanosecond stamps pass.)
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import msgspec

# In canonical JSON a quote that follows a comma opens a name: within a string it would be escaped.
_DIGEST_MEMBER = b',"digest":"'
_DIGEST = re.compile(rb'([0-9a-f]{64})"')


def canonical_json(value: Any) -> bytes:  # noqa: ANN401 - any JSON value
    """Encode a JSON value or a structure of ours."""
    return msgspec.json.encode(value, order="sorted")


def sha256_of(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """SHA-256 over the canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def profile_digest(profile: dict[str, Any]) -> str:
    """Digest of a decoded profile: over everything but its own `digest` field."""
    return sha256_of({name: value for name, value in profile.items() if name != "digest"})


def digest_proven_by(data: bytes | bytearray, size: int) -> str | None:
    """The `digest` that a canonical file carries, if the rest of its bytes has it; null: decode it to find out.

    The member is cut out of the bytes, and they are hashed as they are: that is ten times as quick as `profile_digest`.

    A file that passes is what its writer hashed, and decoding it is up to the caller, who has to find the same digest
    in it. It need not be canonical: whoever hashes a file with a name twice in it passes, and as in any other reading
    the later one counts.

    Args:
        data: begins with the whole file; one line break at the file's end is not part of the JSON.
        size: of the file, in bytes.
    """
    start = data.rfind(_DIGEST_MEMBER, 0, size)
    member = _DIGEST.match(data, start + len(_DIGEST_MEMBER), size) if start >= 0 else None
    if member is None:
        return None
    digest, after = member[1].decode(), member.end()
    end = size - data.endswith(b"\n", 0, size)
    with memoryview(data) as view, view[:start] as before, view[after:end] as behind:
        own = hashlib.sha256(before)
        own.update(behind)
    return digest if own.hexdigest() == digest else None
