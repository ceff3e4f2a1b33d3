"""Is the suite's matrix product the machine's? Prints the best of `kit run ceilings` over the best called plainly.

    PYTHONPATH=.:tests python tests/bench/bench_ceilings.py [--n 512 1024 2048] [--rounds 3] [--device cpu]

NumPy, PyTorch and JAX are each called in a loop of their own, in a process of their own, into memory that is there
where they can, for blocks of a quarter of a second; then the suite's products are measured, then they are called again.
Of each size: the rate of the best block plainly (of both times) and by the suite, over all frameworks, and the ratio:
0.9 and more is the aim.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kit_process import kit
from measuring import printed

from kit.compare.runs import run_of
from kit.profile.store import read_profile

# As many blocks as the suite has of each product, as long as its own.
BLOCK_S, SECONDS = 0.25, 3.0
SUITE = """
name = "products"
title = "Matrix products"
[cells]
workloads = ["matmul"]
backends = ["tensorflow", "torch", "jax"]
devices = ["{device}"]
parameters = {{ n = {sizes} }}
[measure]
rounds = {rounds}
cycles = 4
warmup_s = 0.3
"""
PLAIN = """
import json, sys, time
name, device, *sizes = sys.argv[1:]
best = {}
for n in map(int, sizes):
    if name == "numpy":
        import numpy as np
        a, b = np.random.rand(2, n, n).astype(np.float32)
        c = np.empty_like(a)
        call = lambda: np.matmul(a, b, out=c)
    elif name == "torch":
        import torch
        where = "cuda" if device == "gpu" else "cpu"
        a, b = torch.rand(2, n, n, device=where)
        c = torch.empty_like(a)
        call = lambda: (torch.mm(a, b, out=c), torch.cuda.synchronize() if device == "gpu" else None)
    else:
        import jax, jax.numpy as jnp
        jax.config.update("jax_default_matmul_precision", "highest")
        a, b = jax.random.uniform(jax.random.key(0), (2, n, n), jnp.float32)
        product = jax.jit(jnp.matmul)
        call = lambda: product(a, b).block_until_ready()
    call()
    best[n], end = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        begin, count = time.perf_counter(), 0
        while count < 2 or time.perf_counter() < begin + BLOCK_S:
            call()
            count += 1
        best[n] = min(best[n], (time.perf_counter() - begin) / count)
print(json.dumps({n: 2e-9 * n**3 / seconds for n, seconds in best.items()}))
"""


def plainly(device: str, sizes: list[int]) -> dict[str, dict[int, float]]:
    """Return the best GFLOP/s of each size, by what was called."""
    best = {}
    for name in ("numpy", "torch", "jax") if device == "cpu" else ("torch", "jax"):
        program = PLAIN.replace("SECONDS", str(SECONDS)).replace("BLOCK_S", str(BLOCK_S))
        command = [sys.executable, "-c", program, name, device, *map(str, sizes)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        best[name] = {int(n): rate for n, rate in json.loads(done.stdout).items()}
    return best


def by_the_suite(device: str, sizes: list[int], rounds: int) -> dict[int, tuple[float, str]]:
    """Return the best GFLOP/s of each size, and of which framework."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "products.toml").write_text(SUITE.format(device=device, sizes=sizes, rounds=rounds))
        begin = time.perf_counter()
        done = kit(path, "run", "products.toml", "--out", "run.json", timeout_s=1200)
        if done.returncode:
            sys.exit(done.stderr)
        print(f"the suite's products took {time.perf_counter() - begin:.0f} s")
        best: dict[int, tuple[float, str]] = {}
        for ceiling in run_of("", read_profile(path / "run.json"), all_cycles=True).ceilings:
            n = ceiling.cell.parameters["n"]
            best[n] = max(best.get(n, (0.0, "")), (ceiling.rate / 1e9, ceiling.cell.backend))
        return best


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, nargs="+", default=[512, 1024, 2048])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    arguments = parser.parse_args()
    before = plainly(arguments.device, arguments.n)
    suite = by_the_suite(arguments.device, arguments.n, arguments.rounds)
    again = plainly(arguments.device, arguments.n)
    every = {name: max(*before[name].values(), *again[name].values()) for name in before}
    best = max(suite.values())
    rows = [("n", *(f"{name} GFLOP/s" for name in before), "suite GFLOP/s", "of", "suite / best plainly")]
    for n in arguments.n:
        rates = {name: max(before[name][n], again[name][n]) for name in before}
        shown = (f"{rate:.0f}" for rate in rates.values())
        rows.append((str(n), *shown, f"{suite[n][0]:.0f}", suite[n][1], f"{suite[n][0] / max(rates.values()):.3f}"))
    # What networks are held against: the best of all sizes.
    ceiling = (f"{best[0]:.0f}", best[1], f"{best[0] / max(every.values()):.3f}")
    rows.append(("ceiling", *(f"{rate:.0f}" for rate in every.values()), *ceiling))
    printed(rows)


if __name__ == "__main__":
    main()
