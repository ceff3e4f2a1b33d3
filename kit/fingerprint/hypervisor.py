"""What we run on top of: bare metal, or which hypervisor."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

from kit.fingerprint.processor import CPUINFO, kernel_fields

# Vendor and product strings of the firmware tables, lower case, and who writes them.
DMI_MARKS = {
    "qemu": "kvm",
    "kvm": "kvm",
    "amazon ec2": "amazon",
    "google compute engine": "google",
    "microsoft corporation virtual machine": "hyperv",
    "vmware": "vmware",
    "virtualbox": "virtualbox",
    "innotek": "virtualbox",
    "xen": "xen",
    "parallels": "parallels",
}
UNNAMED = "unnamed"
LSCPU_TIMEOUT_S = 10.0


def hypervisor(
    reasons: dict[str, str], dmi: Path = Path("/sys/class/dmi/id"), cpuinfo: Path = CPUINFO, ask_lscpu: bool = True
) -> str | None:
    """Name of the hypervisor; "none" on bare metal; None, with why in `reasons`, where it cannot be told.

    x86 processors show their guests a CPUID bit, so its absence means bare metal; other architectures have no such bit.
    """
    flags = kernel_fields(cpuinfo).get("flags")
    named = _by_dmi(dmi)
    if flags is not None and "hypervisor" not in flags.split():
        return "none"
    named = named or (_by_lscpu() if ask_lscpu else None)
    if named is None and flags is not None:
        return UNNAMED
    if named is None:
        reasons["hypervisor"] = f"{platform.machine()} has no hypervisor flag, and neither {dmi} nor lscpu names one"
    return named


def _by_dmi(dmi: Path) -> str | None:
    words = []
    for name in ("sys_vendor", "product_name"):
        try:
            words.append((dmi / name).read_text().strip().lower())
        except OSError:
            continue
    text = " ".join(words)
    return next((name for mark, name in DMI_MARKS.items() if mark in text), None)


def _by_lscpu() -> str | None:
    """`lscpu` asks CPUID leaf 0x40000000, which Python cannot."""
    try:
        shown = subprocess.run(
            ["lscpu"], capture_output=True, text=True, check=True, timeout=LSCPU_TIMEOUT_S, env={"LC_ALL": "C"}
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"^Hypervisor vendor:\s*(\S.*)$", shown, re.MULTILINE)
    return found.group(1).strip().lower() if found else None
