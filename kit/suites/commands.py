"""Commands as they are named: ``NAME='./bench --size 3'``, with a server, a figure and what runs before each run."""

from __future__ import annotations

import re
import shlex

from kit.nearest import did_you_mean
from kit.profile.program_source import CommandSource
from kit.suites.run_request import OF_COMMANDS, OPTIONS, RunRequest
from kit.suites.suite import VARIANT_NAME, ProgramTable, SuiteError

# In a server's words: a free port, also in those of its command.
PORT = "{port}"
SHELL = "/bin/sh"
JSON = "json:"
ANY_CODE = "all"
NAME_MAX = 40
# In a shell VAR=1 cmd sets a variable.
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_OPERATOR = re.compile(r"[();<>|&]+")
# Of a rate more is better, and the usual is less.
_RATE = re.compile(r"\S*/ ?(?:s|sec|second)\b|\S*per[ _]s(?:ec|econd)?\b|\b[TGMk]?(?:FLOPS|B/s|ops)\b")
_UNFIT = re.compile(r"[^A-Za-z0-9._+-]+")


def commands_given(request: RunRequest) -> dict[str, ProgramTable]:
    """Return the commands of the command line by name, in their order.

    Raises:
        SuiteError: one has no words or another's name, a server has no command or no port, or a figure is no pattern.
    """
    if not request.commands and (
        given := [name for name in OF_COMMANDS if getattr(request, name) not in ((), "", False, None)]
    ):
        raise SuiteError(f"{OPTIONS[given[0]]} belongs to a command; give --command NAME='…', too")
    servers = dict(_named("--serve", text) for text in request.serve)
    pairs = [_named("--command", text) for text in request.commands]
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise SuiteError(f"--command: two commands are called {name}; give them names: --command NAME='…'")
    for name, text in servers.items():
        if name not in names:
            raise SuiteError(f"--serve {name}=…: no command has this name{did_you_mean(name, names)}")
        if PORT not in text:
            raise SuiteError(f"--serve {name}=…: write {PORT} where it takes its port, and in the command that asks it")
    figure = _figure(request)
    codes = _exit_codes(request.ignore_failure)

    def words(text: str) -> list[str]:
        return ([SHELL, "-c", text] if request.shell else _split(text)) if text else []

    return {
        name: ProgramTable(
            command=CommandSource(
                words=words(text),
                serve=words(servers.get(name, "")),
                prepare=words(request.prepare),
                exit_codes=codes,
                figure=figure,
                better=request.better or "less",
                unit=request.unit or ("" if figure else "s"),
            )
        )
        for name, text in pairs
    }


def _named(option: str, text: str) -> tuple[str, str]:
    """Return the name before a ``=``, or one made of the words, and the words."""
    name, equals, words = text.partition("=")
    if not (equals and VARIANT_NAME.fullmatch(name)):
        name, words = _UNFIT.sub("_", text).strip("._+-")[:NAME_MAX].rstrip("._+-"), text
    if equals and _VARIABLE.fullmatch(name):
        raise SuiteError(f"{option} {text!r}: {name} would be its name; write {option} NAME='env {text}'")
    if not words.strip() or not name:
        raise SuiteError(f"{option} {text!r}: it names no command; give {option} NAME='./program --option'")
    return name, words


def _split(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise SuiteError(f"{text!r} cannot be split into words: {error}; close its quotes") from None
    reader = shlex.shlex(text, posix=False, punctuation_chars=True)
    reader.whitespace_split, reader.commenters = True, ""
    for word in reader:
        if word[:1] not in "'\"" and (_OPERATOR.fullmatch(word) or word[0] == "~" or re.search(r"[$*`]", word)):
            raise SuiteError(f"only a shell understands {word!r}; add --shell, or quote it")
    return words


def _figure(request: RunRequest) -> str:
    if not request.figure:
        if request.unit or request.better:
            raise SuiteError("--unit and --better belong to a figure; give --figure, too")
        return ""
    if not request.better and (rate := _RATE.search(f"{request.unit} {request.figure}")):
        raise SuiteError(f"--figure: {rate[0].strip()!r} looks like a rate; give --better more, or --better less")
    if request.figure.startswith(JSON):
        return request.figure
    try:
        groups = re.compile(request.figure).groups
    except re.error as error:
        raise SuiteError(
            f"--figure {request.figure!r} is no regular expression: {error}; give one such as 'tokens/s: ([0-9.]+)'"
        ) from None
    if groups != 1:
        raise SuiteError(
            f"--figure {request.figure!r} has {groups} groups; put one in brackets, the number: 'tokens/s: ([0-9.]+)'"
        )
    return request.figure


def _exit_codes(text: str) -> list[int] | None:
    """Return the exit codes that are accepted; None: any. 0 always is."""
    if text == ANY_CODE:
        return None
    codes = text.split(",") if text else []
    if not all(code.removeprefix("-").isdecimal() and len(code) < 5 for code in codes):  # noqa: PLR2004
        raise SuiteError(f"--ignore-failure {text!r}: give {ANY_CODE}, or exit codes such as 1,3")
    return [0, *map(int, codes)]
