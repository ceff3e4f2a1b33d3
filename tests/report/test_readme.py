"""The README shows what the kit prints today."""

import io
import re

from kit.audit.finding import audit
from kit.backends.catalog import CATALOG
from kit.compare.within import compare_within
from kit.profile.store import read_profile
from kit.report import table
from kit.report.words import RenderOptions
from kit.workloads.parity import PARITY_TOLERANCE

PROFILE = "profiles/reference/cpu-epyc-2-vcpu-quick.json"


def test_its_table_is_the_reference_profile_s(request):
    root = request.config.rootpath
    profile = read_profile(root / PROFILE)
    comparison = compare_within("x", profile, findings=audit(profile), parity_tolerance=PARITY_TOLERANCE)
    titles = {name: entry.title for name, entry in CATALOG.items()}
    printed = table.render(comparison, RenderOptions(stream=io.StringIO(), titles=titles))
    blocks = re.findall(r"```text\n(.*?)```", (root / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert blocks[0] == printed, f"paste what `kit compare {PROFILE}` prints"
