"""Print the table of rates in docs/steady-state.md: ``python tests/stats/print_steady_rates.py`` (half a minute)."""

from step_series import FAMILIES, rate_of
from strict_recipe import strict_steady_state
from test_steady_rates import TRIALS

from kit.stats.steady_state import find_steady_state

print("| series | of which | right | found right | stated | strict recipe |\n|---|---|---|---|---|---|")
for family in FAMILIES:
    ours, strict = (rate_of(family, detect, TRIALS) for detect in (find_steady_state, strict_steady_state))
    low, high = ours.interval
    right = "any level" if len(family.right) > 1 else family.right[0].replace("_", " ")
    share = f"{ours.right / ours.trials:.1%} [{low:.1%}, {high:.1%}]"
    print(
        f"| {family.kind} | {family.name} | {right} | {share} | ≥ {family.at_least:.0%} |"
        f" {strict.right / strict.trials:.1%} |"
    )
