"""Programs compiled again while they were measured: the steps then hold compilations, or a program that keeps changing.

Shapes, types and flags of a cell never change, so a framework that compiles again after its first step has found a
reason of its own.
"""

from __future__ import annotations

from kit.audit.rule import Member, Outcome, rule
from kit.profile.reason import Reason, reason

# In any launch: the first step has compiled all there is.
RECOMPILES_LEAST = 1
# Where a framework says why. TensorFlow warns of retracing by itself.
LOG_SETTINGS = {"torch": "TORCH_LOGS=recompiles", "jax": "JAX_EXPLAIN_CACHE_MISSES=1"}


@rule("member", worst="warning")
def recompiles(member: Member) -> Outcome:
    """Find cells that their framework compiled again after the first step."""
    counted = [launch.recompiles.count for launch in member.launches.values() if launch.recompiles is not None]
    counts = [count for count in counted if count is not None]
    if not counts and member.cell.compile_mode == "eager":
        return None  # it compiles nothing
    if not counts:
        return next((why for why in _reasons(member) if why is not None), reason("not_recorded", what="recompiles"))
    affected = [count for count in counts if count >= RECOMPILES_LEAST]
    if not affected:
        return None
    evidence = {"recompiles": sum(affected), "launches": len(affected), "of_launches": len(counts)}
    setting = LOG_SETTINGS.get(member.cell.backend)
    remedy = None if setting is None else reason("log_recompiles", setting=setting)
    return member.finding("recompiles", "warning", evidence, 100 * len(affected) / len(counts), remedy)


def _reasons(member: Member) -> list[Reason | None]:
    """Return why a framework counted none."""
    return [launch.recompiles.reason for launch in member.launches.values() if launch.recompiles is not None]
