"""A program that trains into denormal numbers: what its steps take as it was left, and with weights that are put back.

    python tests/bench/denormals.py [--rounds 4] [--cycles 12] [--old PYTHON] [--folder DIR]

The program classifies one batch that never changes, so within some hundred steps its gradients are next to nothing, and
RMSprop's numbers decay until they are denormal. PyTorch computes with those.

    left      the steps go on from block to block, as in every kit before this one
    reset     before each block the program puts weights and optimizer state back
    flushed   as left, with torch.set_flush_denormal(True) in the program

The variants take turns in one run. Prints the step of each in its first and its last cycle, what is denormal at the
end, and what the audit says. `--old` is the interpreter of a build before 0.4 with its kit, whose worker does not
understand this runner's requests: its own run comes after, of the program as it is left.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

WIDTH, CLASSES, RATE, RHO, BATCH = 256, 10, 5e-3, 0.8, 16
# Of the warm-up: so many lead to denormal numbers, however long they take.
STEPS = 800
HOW = "DENORMALS_HOW"
VARIANTS = ("left", "reset", "flushed")


def program(batch: int, device: str) -> dict[str, Any]:
    """Return the step of a perceptron and, unless it is to be left alone, how it is put back."""
    import torch

    how = os.environ.get(HOW, "left")
    torch.set_flush_denormal(how == "flushed")
    torch.manual_seed(0)
    layers = [torch.nn.Linear(784, WIDTH), torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, CLASSES)]
    model = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2]).to(device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=RATE, alpha=RHO)
    x, y = torch.rand(batch, 784), torch.randint(CLASSES, (batch,))
    first = [weight.detach().clone() for weight in model.parameters()]

    def step() -> torch.Tensor:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def reset() -> None:
        for weight, value in zip(model.parameters(), first, strict=True):
            weight.data = value.clone()
        optimizer.state.clear()

    return {"step": step, "reset": reset} if how == "reset" else {"step": step}


def suite_of(options: argparse.Namespace, variants: tuple[str, ...]) -> str:
    """Return the suite of these variants."""
    lines = ['name = "denormals"', 'title = "Denormals"', 'compare = ["variant"]']
    lines += ["[programs.decaying]", f'path = "{Path(__file__).resolve()}"', "[cells]", f"batches = [{BATCH}]"]
    lines += ["[measure]", f"rounds = {options.rounds}", f"cycles = {options.cycles}", "energy_s = 0"]
    lines += ["warmup_s = 0", f"warmup_steps = {STEPS}"]
    for name in variants:
        lines += [f"[variants.{name}]", f'env = {{ {HOW} = "{name}" }}']
    return "\n".join(lines) + "\n"


def measured(python: str, suite: str, path: Path) -> dict[str, Any]:
    """Run a suite by the kit of an interpreter; return the profile."""
    path.with_suffix(".toml").write_text(suite)
    # Not `-m`, which imports from the current folder first.
    command = [str(Path(python).with_name("kit")), "run", str(path.with_suffix(".toml")), "--out", str(path), "--force"]
    subprocess.run(command, check=True, stdout=sys.stderr)
    profile: dict[str, Any] = json.loads(path.read_text())
    return profile


def print_cell(name: str, cell: dict[str, Any]) -> None:
    """Print the step of a cell over its cycles, as medians over its launches, and its numbers."""
    rounds = [launch["blocks"] for launch in cell["launches"]]
    steps_ms = [
        [ns / count / 1e6 for ns, count in zip(blocks["duration_ns"], blocks["steps"], strict=True)]
        for blocks in rounds
    ]
    places = ("first", 0), ("last", -1)
    shown = [f"{title} cycle {statistics.median(steps[at] for steps in steps_ms):7.2f} ms" for title, at in places]
    numbers = cell["launches"][-1].get("numbers") or {}
    share, loss = numbers.get("denormal_share"), numbers.get("last_block_loss")
    state = "not recorded" if share is None else f"denormal {100 * share:.1f} %, loss {loss:.2g}"
    print(f"{name:12} {'  '.join(shown)}  {state}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--cycles", type=int, default=12)
    parser.add_argument("--old", help="interpreter of an older build")
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp())
    path = folder / "new.json"
    for cell in measured(sys.executable, suite_of(options, VARIANTS), path)["cells"]:
        print_cell(cell["cell"]["variant"], cell)
    if options.old:
        for cell in measured(options.old, suite_of(options, ()), folder / "old.json")["cells"]:
            print_cell("old build", cell)
    audit = [sys.executable, "-m", "kit", "audit", str(path), "--format", "json"]
    findings = json.loads(subprocess.run(audit, check=False, stdout=subprocess.PIPE).stdout)["findings"]
    for finding in findings:
        if finding["code"] in ("denormals", "vanished_loss", "step_grows", "step_shrinks"):
            print(finding["severity"], finding["code"], finding["cell_key"], finding["values"])


if __name__ == "__main__":
    main()
