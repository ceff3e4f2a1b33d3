"""What a profile may say of people and machines: people pass profiles on.

variable ─► recorded   a secret by its name or its form is cut, an address or a device is hashed, TF_CONFIG is counted
text     ─► cleaned    the same for messages, paths and the last lines of a worker
profile  ─► published  every text of a profile, before it is written
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import platform
import re
import secrets
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from kit.environment import VARIABLES
from kit.files import read_limited, write_atomically
from kit.fingerprint.this_machine import container
from kit.profile.cell import NOT_RECORDED
from kit.profile.schema import Profile

MACHINE_ID = Path("/etc/machine-id")
# As many as no one tries; a machine-id has 32 digits and a line break, or is the word "uninitialized".
SALT_B, SALT_MAX_B = 32, 64
# Enough digits that two of a machine's names do not meet.
DIGITS = 12
CUT = "<secret>"
# A word of a variable's name that makes its value a secret wherever it stands, and those that do so alone between `_`.
_SECRET_PARTS = re.compile(
    r"TOKEN(?!IZ)|SECRET|PASSW|CREDENTIAL|BEARER|PRIVATE|COOKIE|SIGNATURE|(?:PASS|PWD|KEY)(?![A-Z0-9])"
)
_SECRET_WORDS = frozenset({"AUTH", "PAT", "PW", "KEYS", "SESSION", "LOGIN", "USER", "USERNAME"})
# Values of these name a host or how it is reached.
_ADDRESS_WORDS = frozenset({
    "ADDRESS", "ADDR", "ADDRESSES", "HOST", "HOSTS", "HOSTNAME", "MASTER", "ENDPOINT", "ENDPOINTS", "PROXY", "NODELIST",
    "SERVER", "URL", "URI", "IP",
})  # fmt: skip
# A switch or a size names no host.
_PLAIN = re.compile(r"(?i)|[\d.]+|true|false|yes|no|on|off|auto|none")
# Steadykit's own switches, which decide what a variant measures.
OWN = frozenset(variable.name for variable in VARIABLES if variable.set_by == "variant")
# The forms of well-known services' keys, JSON web tokens, and a key in PEM.
_SECRET_FORMS = re.compile(
    r"\b(?:hf_\w{20,}|gh[opsur]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|npm_\w{20,}|sk[-_][\w-]{16,}|A[KS]IA[0-9A-Z]{16}"
    r"|xox[abprs]-[\w-]{10,}|AIza[\w-]{30,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*-----)?"
)
_ASSIGNED = re.compile(
    r"(?i)((?:TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|BEARER|COOKIE|SIGNATURE|AUTHORIZATION|(?:API|ACCESS|APP|PRIVATE)[_-]?KEY"
    r"""|[a-z0-9]PASS|[_-](?:AUTH|PASS|PWD|PW|PAT|KEY))["']?\s*[=:]\s*"""
    r"""(?:bearer\s+|basic\s+)?["']?)[^\s"'&;,]+"""
)
# As an option of a command line, whose value follows a blank.
_OPTION = re.compile(r"(?i)((?<!\S)--?(?:[\w-]*[-_])?(?:token|secret|password|passwd|api[-_]?key)\s+)(?!-)[^\s\"']+")
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}")
_URL_USER = re.compile(r"(?<=://)[^/\s]+@")
# A variable's value may have a key of any service: long, of letters and digits mixed, and no part of a path.
_LONG = re.compile(
    r"(?<![\w./+-])(?=[A-Za-z+]*\d[A-Za-z+]*\d[A-Za-z+]*\d)(?=\d*[A-Za-z])[A-Za-z0-9+]{32,}=*(?![\w./-])"
)
_DEVICE = re.compile(r"\b(GPU|MIG)-([0-9a-fA-F][0-9a-fA-F-]{3,})")
_MAC = re.compile(r"\b[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}\b")
# With a port: four numbers alone may be a version.
_ADDRESS = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?=:\d)|\[[0-9A-Fa-f:]*:[0-9A-Fa-f:]+\](?=:\d)")
_LOOPBACK = ("127.", "0.0.0.0", "[::1]", "[::]")
_EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
# Of a person; a service's is not below these.
_HOMES = re.compile(r"((?:/home|/Users))/[^/\s:'\",;]+")
# Shorter names are words of every text.
HOST_NAME_MIN = 5


@cache
def _salt() -> bytes:
    """Return the salt of this machine; where it has none, one of its user, or else of this process.

    All users of a machine have the same, so that a run as root and one as a user are of one host. A machine-id itself
    is never passed on: https://www.freedesktop.org/software/systemd/man/latest/machine-id.html
    That of a container came with its image, and whoever has the image knows it.
    """
    file, new = platformdirs.user_state_path("steadykit") / "salt", secrets.token_bytes(SALT_B)
    for kept in (file,) if container().text("container.engine") else (MACHINE_ID, file):
        with suppress(OSError):
            if kept == file:
                file.parent.mkdir(parents=True, exist_ok=True)
                with suppress(FileExistsError):
                    write_atomically(file, new, replaces=False, mode=0o600)
            if len(salt := read_limited(kept, SALT_MAX_B)) >= SALT_B:
                return salt
    return new


def hashed(identifier: str) -> str:
    """Return the hash of what names a person or machine: the same on this machine, not to be found by trying names."""
    return hmac.new(_salt(), identifier.encode(errors="surrogatepass"), hashlib.sha256).hexdigest()


def is_secret(name: str) -> bool:
    """Return whether a variable of this name holds a credential or a person's name."""
    return bool(_SECRET_PARTS.search(name.upper()) or _words(name) & _SECRET_WORDS)


def _words(name: str) -> set[str]:
    return {*re.split(r"[^A-Z0-9]+", name.upper())}


def recorded(name: str, value: str, *, names_only: bool = False) -> str:
    """Return what a profile says of a variable's value: what is taken out leaves a hash, so that values stay apart."""
    shown = value if name in OWN else NOT_RECORDED if names_only else _shown(name, value)
    return value if shown == value else f"{shown} #{hashed(value)[:DIGITS]}"


def _shown(name: str, value: str) -> str:
    if is_secret(name):
        return CUT
    if name == "TF_CONFIG":
        return _roles(value)
    if _words(name) & _ADDRESS_WORDS and not _PLAIN.fullmatch(value):
        return ""
    return _LONG.sub(CUT, cleaned(value))


def without_secrets(text: str) -> str:
    """Return a text without credentials."""
    text = _SECRET_FORMS.sub(CUT, text)
    text = _URL_USER.sub("", text)
    text = _OPTION.sub(rf"\1{CUT}", _ASSIGNED.sub(rf"\1{CUT}", text))
    return _BEARER.sub(rf"\1 {CUT}", text)


def cleaned(text: str) -> str:
    """Return a text without credentials and identifiers."""
    text = without_secrets(text)
    text = _EMAIL.sub("<email>", text)
    text = _DEVICE.sub(lambda match: f"{match[1]}-#{hashed(match[2].lower())[:DIGITS]}", text)
    text = _ADDRESS.sub(
        lambda match: match[0] if match[0].startswith(_LOOPBACK) else f"#{hashed(match[0])[:DIGITS]}", text
    )
    text = _MAC.sub(lambda match: f"#{hashed(match[0].lower())[:DIGITS]}", text)
    for folder in _home(os.environ.get("HOME", "")):
        text = re.sub(rf"(?<![\w.-]){re.escape(folder)}(?=$|[/\s:'\",;])", "~", text)
    text = _HOMES.sub(r"\1/~", text)
    host = platform.node()
    if len(host) >= HOST_NAME_MIN and host != "localhost":
        for named in dict.fromkeys((host, host.partition(".")[0])):
            if len(named) >= HOST_NAME_MIN:
                text = re.sub(rf"(?<![\w-]){re.escape(named)}(?![\w-])", f"#{hashed(named)[:DIGITS]}", text)
    return text


def published(profile: Profile, *, names_only: bool = False) -> Profile:
    """Return the profile as it is written: variables are `recorded`, paths and messages `cleaned`.

    The identity was cleaned before it was hashed. All other texts are words of Steadykit, or names that the user gave.
    """
    plain = msgspec.to_builtins(profile)
    for variant in plain["suite"]["variants"]:
        variant["env"] = _recorded_all(variant["env"], names_only=names_only)
        variant["python"] = variant["python"] and cleaned(variant["python"])
    for program in plain["suite"]["programs"].values():
        program["path"] = cleaned(program["path"])
    for launch in (launch for result in plain["cells"] for launch in result["launches"]):
        if launch["environment"] is not None:
            launch["environment"] = _recorded_all(launch["environment"], names_only=names_only)
        launch["settings"] = {name: cleaned(text) for name, text in launch["settings"].items()}
        launch["python"] = launch["python"] and cleaned(launch["python"])
        if launch["failure"] is not None:
            launch["failure"]["stderr_tail"] = cleaned(launch["failure"]["stderr_tail"])
        for rank in launch["ranks"]:
            rank["host_sha256"] = hashed(rank["host_sha256"])
    for part in ("state", "sensors", "responses", "suite", "cells"):
        _clean_reasons(plain[part])
    return msgspec.convert(plain, Profile)


def _recorded_all(variables: dict[str, str], *, names_only: bool) -> dict[str, str]:
    return {name: recorded(name, value, names_only=names_only) for name, value in variables.items()}


def _clean_reasons(part: Any) -> None:  # noqa: ANN401 - any JSON value
    """Clean the values of all reasons in a part of a profile, in place; a failed rank's host is named on purpose."""
    if isinstance(part, list):
        for each in part:
            _clean_reasons(each)
    elif isinstance(part, dict):
        if part.keys() == {"code", "values"}:
            values = part["values"].items()
            part["values"] = {
                name: cleaned(value) if isinstance(value, str) and name != "host" else value for name, value in values
            }
        else:
            for each in part.values():
                _clean_reasons(each)


@cache
def _home(_variable: str) -> list[str]:
    """Return the user's home folder, with its links and without; none where that is a root folder."""
    home = Path("~").expanduser()
    return [str(folder) for folder in dict.fromkeys((home, home.resolve())) if folder.name and folder.is_absolute()]


def _roles(text: str) -> str:
    """Return how many tasks a TF_CONFIG has of each kind, and which this one is."""
    try:
        config = json.loads(text)
        counts = {str(kind): len(tasks) for kind, tasks in config.get("cluster", {}).items()}
        return json.dumps({"cluster": counts, "task": str(config.get("task", {}).get("type", ""))}, sort_keys=True)
    except (ValueError, AttributeError, TypeError, RecursionError):
        return CUT
