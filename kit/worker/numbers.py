"""The numbers that steps compute with: losses at the ends of blocks, and what became of weights and optimizer state.

    first step ─ warm-up ─ [restore │ block] ─ [restore │ block] ─ … ─ conclude
        loss                          loss               loss          numbers of the state: denormal, NaN

A number is denormal (subnormal) if it is not 0 and its exponent has no bit. Bits tell: on a thread that flushes such
numbers an arithmetic comparison takes them for 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.backends.protocol import Runnable, StepOutput
from kit.profile.fields import reason
from kit.profile.schema import BlockBegin, ComputedNumbers

# Bits of the fraction, of the exponent and of all, by the name of a type.
FLOATS = {"float64": (52, 11, 64), "float32": (23, 8, 32), "float16": (10, 5, 16), "bfloat16": (7, 8, 16)}
# So many are looked at, which takes 0.1 s, and of an accelerator's 64 MiB are copied; arrays beyond are left out.
NUMBERS_MOST = 1 << 24


class Count(NamedTuple):
    """What was seen among some numbers."""

    numbers: int = 0  # that were looked at
    denormal: int = 0
    nans: int = 0


class Losses:
    """The losses of a program: numbers that its step returns alone."""

    def __init__(self) -> None:
        self._first: float | None = None
        self._blocks: list[float] = []  # of the first block and of the last
        self._was_not_finite = False

    def add(self, program: Runnable, output: StepOutput, *, is_block: bool) -> None:
        """Look at what the last step of a block, or the very first step, returned."""
        if (loss := loss_of(program, output)) is None:
            return
        self._was_not_finite |= not math.isfinite(loss)
        if is_block:
            self._blocks = [*self._blocks[:1], loss]
        else:
            self._first = loss

    def numbers(self, begin: BlockBegin, program: Runnable) -> ComputedNumbers:
        """Return them with the numbers of weights and optimizer state, as the last block has left them."""
        seen = counted(program.state(NUMBERS_MOST))
        return ComputedNumbers(
            blocks_begin=begin,
            first_step_loss=_finite(self._first),
            first_block_loss=_finite(next(iter(self._blocks), None)),
            last_block_loss=_finite(next(reversed(self._blocks), None)),
            loss_reason=None if self._blocks else reason("step_returns_no_loss"),
            state_numbers=seen.numbers,
            denormal_share=seen.denormal / seen.numbers if seen.numbers else None,
            denormal_reason=None if seen.numbers else reason("state_not_found", most=NUMBERS_MOST),
            was_not_finite=getattr(program, "must_be_finite", True) and (self._was_not_finite or seen.nans > 0),
        )


def loss_of(program: Runnable, output: StepOutput) -> float | None:
    """Return the one floating-point number that a step returned; None where it returned anything else."""
    try:
        size = 1 if isinstance(output, float) else math.prod(map(int, output.shape))
    except Exception:  # it has no shape, as a nested tensor, or one whose sizes differ within it
        return None
    if size != 1:
        return None
    values = program.to_host(output)
    return float(values.ravel()[0]) if values.size == 1 else None


def counted(arrays: Iterable[NDArray[Any]]) -> Count:
    """Count among the floating-point numbers of arrays."""
    numbers = denormal = nans = 0
    for array in arrays:
        if array.dtype.name not in FLOATS:
            continue
        fraction_bits, exponent_bits, bits = FLOATS[array.dtype.name]
        unsigned = np.dtype(f"uint{bits}").type
        exponents = unsigned(((1 << exponent_bits) - 1) << fraction_bits)
        # Without the sign: 0, denormal numbers, normal ones from the smallest, infinity (as in masks), and NaN.
        magnitudes = np.ascontiguousarray(array).reshape(-1).view(unsigned) & unsigned((1 << (bits - 1)) - 1)
        numbers += array.size
        zero_or_denormal = np.count_nonzero(magnitudes < unsigned(1 << fraction_bits))
        denormal += int(zero_or_denormal) - (array.size - int(np.count_nonzero(magnitudes)))
        nans += int(np.count_nonzero(magnitudes > exponents))
    return Count(numbers, denormal, nans)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
