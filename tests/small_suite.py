"""A suite that takes seconds, for runs whose numbers do not matter."""

MEASURE = """
[measure]
rounds = 1
cycles = 2
block_s = 0.03
lead_in_s = 0.003
warmup_s = 0.02
warmup_steps = 3
energy_s = 0
"""
SUITE = f"""
name = "small"
title = "Seconds long"
[cells]
workloads = ["mlp"]
backends = ["torch"]
tasks = ["train"]
{MEASURE}"""
