"""Write the pages of docs/reference/ that the code knows: `python docs/generate.py`, or `make reference`.

    kit.cli           -> commands.md            kit.audit rules    -> audit/index.md
    kit.environment   -> environment.md         kit.profile, audit -> *.schema.json

With `--check` it writes nothing, names each stale page and exits with 1: `make docs` begins with that.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Any

import click
import msgspec
from rules_index import rules_page

from kit.audit.finding import AUDIT_SCHEMA, Audit
from kit.cli import app
from kit.documentation import DOCUMENTATION
from kit.environment import VARIABLES, SetBy
from kit.profile.schema import SCHEMA, Profile

REFERENCE = Path(__file__).resolve().parent / "reference"
COMMAND = "make reference"

COMMANDS_INTRO = """\
# Commands

Every command and option of `kit`. `kit COMMAND --help` prints the same text. Bad usage ends with one line and exit \
code 2; [Exit codes](exit-codes.md) has the others. Results go to standard output, progress and messages to standard \
error.

"""
ENVIRONMENT_INTRO = "# Environment variables\n"
ENVIRONMENT_PARTS: dict[SetBy, tuple[str, str]] = {
    "you": ("Variables that you set", "Set these in the shell or in the image, for every command.\n"),
    "variant": (
        "Variables of variants",
        "Set these for one variant, to compare it with the unmodified `default`:\n\n"
        "```sh\nkit run --devices 2 --variant each:env=KIT_PROCESS_EACH=1\n```\n",
    ),
    "kit": ("Variables that Steadykit sets", "Steadykit sets these in its images and for its own processes.\n"),
}
ENVIRONMENT_END = """
## Variables of other programs

| variable | effect |
|---|---|
| `DOCKER_HOST`, `DOCKER_CONTEXT` | They choose the engine for `kit launch` and for images as variants, as they do for \
the `docker` command. |
| `XDG_CACHE_HOME` | Downloaded data sets are kept in its folder `steadykit` if `KIT_DATA` is not set. |
| `XDG_STATE_HOME` | Without `/etc/machine-id`, or in a container, its file `steadykit/salt` has the salt of hashes. |
| `NO_COLOR` | With any value that is not empty, tables have no color. |
| `OMP_NUM_THREADS` | The built-in networks ignore it. Use `--threads` or `taskset`. |

The profile records the variables that frameworks and numerical libraries read, such as `XLA_FLAGS` or \
`KMP_BLOCKTIME`. It records no value of a variable whose name contains `TOKEN`, `SECRET`, `PASSWORD` or a similar \
word, and [cuts what could name a person or a machine](profile.md#what-could-name-a-person-or-a-machine).
"""
# Click's ranges. A limit of a billion is there to keep infinity out.
RANGES = (
    (r"x>=(\S+)", r"At least \1."),
    (r"0<x<=1000000000.0", "More than 0."),
    (r"(\S+)<=x<=(\S+)", r"From \1 to \2."),
    (r"0<x<=(\S+)", r"More than 0, at most \1."),
)

DEFAULT = re.compile(r" Default: ([^.]*)\.(?= |$)| \(default: ([^)]*)\)")


def commands_page() -> str:
    """Return the page of all commands."""
    return COMMANDS_INTRO + "\n".join(_commands(app, click.Context(app, info_name="kit")))


def _commands(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the section of a command and those of its subcommands."""
    if command is not app:
        yield _section(command, context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            known = command.get_command(context, name)
            assert known is not None, name
            yield from _commands(known, click.Context(known, info_name=name, parent=context))


def _section(command: click.Command, context: click.Context) -> str:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    parts = [f"## {context.command_path}\n\n```text\n{usage}\n```\n"]
    parts += [f"\n{_marked(paragraph)}\n" for paragraph in re.split(r"\n\s*\n", (command.help or "").strip())]
    options = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
    if options:
        parts.append("\n| option | default | description |\n|---|---|---|\n")
        parts += [_option_line(option, context) for option in options]
    return "".join(parts)


def _option_line(option: click.Option, context: click.Context) -> str:
    """Return a line of the table: the values of a choice belong to its description, as `|` ends a cell."""
    extra = option.get_help_extra(context)
    value = "" if option.is_flag else option.make_metavar(context)
    description = [_marked(option.help or "")]
    if "|" in value:
        choices = value.strip("[]").split("|")
        description.append(f"Values: {', '.join(f'`{choice}`' for choice in choices)}.")
        value = ""
    if "RANGE" in value:
        value = "N"
    for pattern, words in RANGES:
        if re.fullmatch(pattern, extra.get("range", "")):
            description.append(re.sub(pattern, words, extra["range"]))
            break
    names = ", ".join(f"`{name} {value}`" if value else f"`{name}`" for name in option.opts)
    default = f"`{extra['default']}`" if "default" in extra else ""
    if (in_words := DEFAULT.search(description[0])) is not None:  # in words, where it is no value
        default = in_words[1] or in_words[2]
        description[0] = DEFAULT.sub("", description[0])
    return f"| {names} | {default} | {' '.join(filter(None, description))} |\n"


def _marked(text: str) -> str:
    """Return a help text as Markdown: pages are links, options, variables and files are code."""
    text = re.sub(r"\s+", " ", text.strip())
    parts = re.split(r"(`[^`]*`)", text)  # what is code already stays
    for index in range(0, len(parts), 2):
        part = re.sub(r"([|<*])", r"\\\1", parts[index])
        part = re.sub(r"(?<![\w/.-])(--format json|--?[a-z][\w-]*|KIT_[A-Z_]+)", r"`\1`", part)
        parts[index] = re.sub(rf"(?:{re.escape(DOCUMENTATION)}|\bdocs/)([\w/-]*\w)(\.md)?", _page_link, part)
    return "".join(parts)


def _page_link(match: re.Match[str]) -> str:
    """Return a link from this folder to a page, or to the first page of a folder."""
    target = f"../{match[1]}{match[2] or '/index.md'}".removeprefix("../reference/")
    return f"[{match[0].removeprefix(DOCUMENTATION)}]({target})"


def environment_page() -> str:
    """Return the page of all environment variables."""
    parts = [ENVIRONMENT_INTRO]
    for set_by, (title, lead) in ENVIRONMENT_PARTS.items():
        variables = [variable for variable in VARIABLES if variable.set_by == set_by]
        parts.append(f"\n## {title}\n\n{lead}\n")
        # What Steadykit sets by itself has no default that a user could want to know.
        has_default = any(variable.default for variable in variables)
        parts.append(
            "| variable | default | effect |\n|---|---|---|\n" if has_default else "| variable | effect |\n|---|---|\n"
        )
        for variable in variables:
            name = f"`{variable.name}…`" if variable.name.endswith("_") else f"`{variable.name}`"
            cells = [name, variable.default, variable.does] if has_default else [name, variable.does]
            parts.append(f"| {' | '.join(cells)} |\n")
    return "".join(parts) + ENVIRONMENT_END


def json_schema(document: type[msgspec.Struct], title: str) -> str:
    """Return the JSON Schema (draft 2020-12) of a document, from the structures that read and write it."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **json.loads(msgspec.json.encode(msgspec.json.schema(document)), object_hook=_dedented),
    }
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


def _dedented(schema: dict[str, Any]) -> dict[str, Any]:
    """Return it with its docstring as Python 3.13 keeps them: without the code's indentation."""
    if isinstance(schema.get("description"), str):
        schema["description"] = cleandoc(schema["description"])
    return schema


# Page in docs/reference/ -> what writes it.
PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands_page,
    "environment.md": environment_page,
    "audit/index.md": rules_page,
    "profile.schema.json": lambda: json_schema(Profile, SCHEMA),
    "audit.schema.json": lambda: json_schema(Audit, AUDIT_SCHEMA),
}


def main(arguments: list[str], folder: Path = REFERENCE) -> int:
    """Write the pages into a folder; with --check name those that are stale and return 1 if there are any."""
    parser = argparse.ArgumentParser(description="Write the pages of docs/reference/ that the code knows.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page is stale")
    is_check = parser.parse_args(arguments).check
    stale = []
    for name, page in PAGES.items():
        path, text = folder / name, page()
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not is_check:
            path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"docs/reference/{name} is stale; run: {COMMAND}" if is_check else f"docs/reference/{name}")
    return int(is_check and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
