"""The command line: every verb, none of its work. Verbs import what they need when they are called.

To add a verb, write a click command of its name in a file of `kit/cli/`, and name both here.
"""

from __future__ import annotations

from importlib import import_module

import click

from kit.version import __version__

# In the order of `kit --help`: each verb's file and its line there. A file is imported when its verb is called.
VERBS = {
    "run": ("run_and_selftest", "Measure a suite and write its profile."),
    "compare": ("compare_command", "Compare the cells of a profile, or several profiles, with verdicts."),
    "audit": ("audit", "Check profiles for power, utilization and fairness problems."),
    "report": ("report", "Write profiles as one page that opens anywhere."),
    "plot": ("plot", "Draw profiles as SVG, PNG or PDF."),
    "export": ("export", "Write a profile for Bencher, asv, Perfetto and others."),
    "show": ("listings", "Show everything that one profile recorded."),
    "suites": ("listings", "List the built-in suites."),
    "clock": ("listings", "Measure how precise this machine's clock is."),
    "data": ("listings", "Check the data sets, or download them."),
    "launch": ("launch", "Measure in a container, with Docker or Podman."),
    "fleet": ("fleet", "Measure every node of a cluster and name the slow ones."),
    "doctor": ("listings", "Report what this machine can and cannot measure, and why."),
    "selftest": ("run_and_selftest", "Measure the smallest slowdown this machine can detect."),
}


class Verbs(click.Group):
    """Commands by name, imported when called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own
        """Return the verbs in their order."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's own
        """Import a verb; null for one that there is not."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = getattr(import_module(f"kit.cli.{VERBS[cmd_name][0]}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's own
        """List the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(verb, line) for verb, (_, line) in VERBS.items()])


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="kit", message="%(prog)s %(version)s")
def app() -> None:
    """Measure how fast networks train and infer in TensorFlow, PyTorch and JAX, and whether a difference is real."""
