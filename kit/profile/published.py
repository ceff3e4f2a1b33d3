"""Figures of a table: what a document publishes of a cell, and what a profile's launches come to."""

from __future__ import annotations

from typing import Literal

import msgspec

FigureName = Literal[
    "train_time_s",  # of a fit: all epochs
    "test_time_s",  # one pass over the test split
    "epoch_time_s",  # of a fit, its first epoch left out
    "step_ns",  # of training
    "train_sample_ns",
    "infer_sample_ns",
    "accuracy",
    "precision",  # macro, as the two that follow
    "recall",
    "f1",
    "train_gain_pct",  # the CPU's time over this device's, as a percentage: 100 is as fast
    "test_gain_pct",
    "train_sample_gain_pct",
    "infer_sample_gain_pct",
]


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that a document gives of a cell. Nobody here has measured it."""

    figure: FigureName
    value: float
