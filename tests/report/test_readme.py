"""The README shows what the kit prints today."""

import io
import re

from click.testing import CliRunner

from kit.audit.audit import findings_of as audit
from kit.backends.catalog import CATALOG
from kit.cli.app import app
from kit.compare.suite_table import suite_table
from kit.compare.within import compare_within
from kit.profile.store import read_profile
from kit.report.comparison import comparison_report
from kit.report.formats import write
from kit.report.suite import suite_report
from kit.suites.suite import load_suite

PROFILE = "profiles/reference/cpu-xeon-2-vcpu-quick.json"


def test_its_table_is_the_reference_profile_s(request):
    root = request.config.rootpath
    profile = read_profile(root / PROFILE)
    comparison = compare_within("x", profile, findings=audit(profile))
    titles = {name: entry.title for name, entry in CATALOG.items()}
    printed = write(comparison_report(comparison, titles), "text", io.StringIO())
    assert printed in blocks(root), f"paste what `kit compare {PROFILE}` prints"


def test_its_table_of_the_literature_is_that_of_the_profiles(request):
    root = request.config.rootpath
    suite = load_suite("frameworks-cnn")
    measured = ("mine", read_profile(root / "profiles/reference/cpu-epyc-2-vcpu-frameworks-cnn.json"))
    published = ("published", read_profile(root / "profiles/published/frameworks-cnn.json"))
    table = suite_table(suite.title, suite.table.rows, suite.table.figures, [measured, published])
    assert write(suite_report(table), "text", io.StringIO()) in blocks(root), "paste what the command above it prints"


def test_its_audit_is_that_of_the_profile(request):
    root = request.config.rootpath
    shown = CliRunner().invoke(app, ["audit", str(root / PROFILE)], standalone_mode=False)
    assert shown.stdout in blocks(root), f"paste what `kit audit {PROFILE}` prints"


def blocks(root):
    return re.findall(r"```text\n(.*?)```", (root / "README.md").read_text(encoding="utf-8"), re.DOTALL)
