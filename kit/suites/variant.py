"""A variant as the command line names it: ``NAME``, ``NAME:python=/envs/new/bin/python,env=OMP_WAIT_POLICY=active``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kit.suites.suite import VARIANT_NAME, SuiteError, VariantTable

# A comma begins the next setting only before one: values may have commas of their own.
_NEXT_SETTING = re.compile(r",(?=(?:python|image|env)=)")
_EXAMPLE = "as in --variant tcmalloc:env=LD_PRELOAD=libtcmalloc_minimal.so.4"


def variants_given(texts: Iterable[str]) -> dict[str, VariantTable]:
    """Return the variants by name, in the order given.

    Raises:
        SuiteError: a name twice, or a text that names no variant.
    """
    variants: dict[str, VariantTable] = {}
    for text in texts:
        name, colon, settings = text.partition(":")
        if not colon and "=" in name:
            raise SuiteError(f"--variant {text!r}: a name comes first; give --variant NAME:env={text}, {_EXAMPLE}")
        if not VARIANT_NAME.fullmatch(name):
            raise SuiteError(f"--variant {text!r}: {name!r} is no name; give letters, digits and . _ + -, {_EXAMPLE}")
        if name in variants:
            raise SuiteError(f"--variant {name}: two variants of one name; give each its own")
        variants[name] = _table(text, settings)
    if list(variants.values()) == [VariantTable()]:
        raise SuiteError(f"--variant {name} sets nothing, and there is no other to compare it with; {_EXAMPLE}")
    return variants


def _table(text: str, settings: str) -> VariantTable:
    python, image, env = None, None, {}
    for setting in _NEXT_SETTING.split(settings) if settings else []:
        kind, _, value = setting.partition("=")
        if kind == "python" and value:
            python = value
        elif kind == "image" and value:
            image = value
        elif kind == "env" and "=" in value and not value.startswith("="):
            name, _, content = value.partition("=")
            env[name] = content
        else:
            raise SuiteError(
                f"--variant {text!r}: {setting!r} sets nothing; give python=PATH, image=NAME or env=NAME=VALUE, "
                f"{_EXAMPLE}"
            )
    if python and image:
        raise SuiteError(f"--variant {text!r}: an image has its own interpreters; give python or image")
    return VariantTable(python=python, image=image, env=env)
