"""Suites that take seconds, for runs whose numbers do not matter."""


def measure(rounds: int = 1, cycles: int = 2, block_s: float = 0.03, **more: object) -> str:
    """Return the table that makes a suite short; `more` are further settings of it."""
    settings = {"rounds": rounds, "cycles": cycles, "block_s": block_s, "lead_in_s": block_s / 10}
    settings |= {"warmup_s": block_s, "warmup_steps": 3, **more}
    return "\n".join(["", "[measure]", *(f"{name} = {value}" for name, value in settings.items()), ""])


MEASURE = measure(energy_s=0)
SUITE = f"""
name = "small"
title = "Seconds long"
[cells]
workloads = ["mlp"]
backends = ["torch"]
tasks = ["train"]
{MEASURE}"""
