"""The command line: every verb, none of its work. Verbs import what they need when they are called."""

from __future__ import annotations

import click

from kit.cli.clock import clock
from kit.cli.compare import compare
from kit.cli.doctor import doctor
from kit.cli.run import run
from kit.cli.selftest import selftest
from kit.cli.show import show
from kit.cli.suites import suites
from kit.version import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="kit", message="%(prog)s %(version)s")
def app() -> None:
    """How fast the same network trains and infers in TensorFlow, PyTorch and JAX, and whether a difference is real."""


for verb in (run, compare, show, suites, clock, doctor, selftest):
    app.add_command(verb)
