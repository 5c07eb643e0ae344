"""Training runs: how far and how fast a condition gets, over several seeds.

A run that does not reach the threshold is censored, not dropped: it stays in every table, with how long it was
watched.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from benchlib.cache import Block, Epoch, Measurement, identity
from benchlib.condition import Condition
from benchlib.stats.comparison import DISTURBED, MODELS_DIFFER, MODELS_NOT_CHECKED, NOT_MEASURED
from benchlib.stats.intervals import Interval, geometric_interval
from benchlib.stats.measured import Frame, Measured
from benchlib.stats.validity import DIFFERENT, LOST, MOST, NOT_CHECKED, SAME

NOT_REACHED = "threshold not reached"  # why there is no time to the threshold, or no ratio of two


@dataclass(frozen=True, repr=False)
class TrainingRuns(Measured):
    """The runs of conditions, one measurement a condition and seed; each trained ``epochs`` at least."""

    epochs: int
    threshold: float | None

    def runs(self) -> pd.DataFrame:
        """A row per run: seed, epochs, reached, epochs and seconds to the threshold (nan: not reached, censored),
        metrics, epoch_s, failure.

        ``metric`` is that after ``self.epochs`` epochs (nan if the run failed before), ``loss`` the mean over the last
        of them. ``epoch_s`` are the mean seconds of an undisturbed epoch. ``first_step_s``, with compilation (nan if it
        was disturbed), is in none of the times. Where ``times_count`` is false (see :func:`undisturbed`) a run's times
        cannot be compared.
        """
        return Frame([self._run(m) for m in self.measurements])

    def curves(self) -> pd.DataFrame:
        """A row per epoch of a run: steps, seconds (training time so far, evaluation off the clock), loss (mean of the
        epoch), metric (after it).
        """
        rows = []
        for m in self.measurements:
            seconds = 0.0
            for epoch in m.epochs:
                seconds += epoch.wall_s
                steps = sum(block.steps for block in m.blocks if block.epoch == epoch.epoch)
                columns = {"seed": m.seed, "epoch": epoch.epoch, "steps": steps, "seconds": seconds}
                learned = {"loss": epoch.loss, "metric": epoch.metric, "measurements": m.file}
                rows.append({**identity(m.condition), **columns, **learned})
        return Frame(rows)

    def first_epoch(self, condition: Condition, with_compilation: bool = True) -> Interval:
        """The time of the first epoch over the geometric mean of the others', with an interval over seeds, without
        disturbed ones. With compilation its first step takes the time of the process's first step. It is nan if that
        was disturbed in more than half of the runs.
        """
        runs = [m for m in self.measurements if m.condition == condition and len(m.epochs) >= 2]
        if with_compilation:
            quiet = [m for m in runs if not m.first_step_disturbed_by]
            runs = [] if len(runs) - len(quiet) > MOST * len(runs) else quiet
        logs = []
        for m in runs:
            steps = sum(block.steps for block in m.blocks if block.epoch == m.epochs[0].epoch)
            alone, others = _undisturbed_epochs(m, m.epochs[:1]), _undisturbed_epochs(m, m.epochs[1:])
            if alone and others:
                first = m.first_step_s + alone[0] * (1 - 1 / steps) if with_compilation else alone[0]
                logs.append(math.log(first) - float(np.mean(np.log(others))))
        return geometric_interval(logs)

    def times_as_fast(
        self, condition: Condition, baseline: Condition, seconds: str = "epoch_s"
    ) -> tuple[Interval, str | None]:
        """The baseline's ``seconds`` (``epoch_s`` or ``seconds_to_threshold``) over those of ``condition``, within the
        seeds that both have undisturbed, with an interval over these. Also the reason if there is none. Either the
        models are not certified, though more than the learning rate differs, or a run did not get to the threshold.
        Without such runs it would be biased.
        """
        every = self.runs()
        pair = every[every["label"].isin({str(condition), str(baseline)})]
        timed, models = drop_disturbed(pair), set(pair["models"])
        mine, theirs = (timed[timed["label"] == str(one)].set_index("seed") for one in (condition, baseline))
        logs = (np.log(theirs[seconds]) - np.log(mine[seconds])).dropna().to_list()
        proved = models <= {SAME} or condition.but(learning_rate=baseline.learning_rate) == baseline
        together = len((theirs["epoch_s"] - mine["epoch_s"]).dropna()) > 0
        why = None if logs else NOT_MEASURED
        if len(timed) < len(pair) and not (proved and together):
            why = DISTURBED
        elif not proved:
            why = MODELS_DIFFER if DIFFERENT in models else MODELS_NOT_CHECKED
        elif seconds == "seconds_to_threshold" and not pair["reached"].all():
            why = NOT_REACHED
        return geometric_interval([] if why else logs), why

    def _run(self, m: Measurement) -> dict[str, Any]:
        seconds = np.cumsum([epoch.wall_s for epoch in m.epochs])
        hits = [i for i, epoch in enumerate(m.epochs) if self.threshold is not None and epoch.metric >= self.threshold]
        undisturbed_s, watched = _undisturbed_epochs(m, m.epochs), m.epochs[: hits[0] + 1 if hits else None]
        last = m.epochs[self.epochs - 1] if len(m.epochs) >= self.epochs else None
        certificate = self.certificates.get(m.condition.key)
        return {
            **identity(m.condition),
            "seed": m.seed,
            "epochs": len(m.epochs),
            "reached": bool(hits),
            "epochs_to_threshold": hits[0] + 1 if hits else np.nan,
            "seconds_to_threshold": float(seconds[hits[0]]) if hits else np.nan,
            "seconds": float(seconds[-1]) if m.epochs else np.nan,
            "metric": last.metric if last else np.nan,
            "loss": last.loss if last else np.nan,
            "best_metric": max((epoch.metric for epoch in m.epochs), default=np.nan),
            "epoch_s": float(np.mean(undisturbed_s)) if undisturbed_s else np.nan,
            "first_step_s": np.nan if m.first_step_s is None or m.first_step_disturbed_by else m.first_step_s,
            "disturbed_time": _disturbed_time(m.blocks),
            "times_count": not (_disturbed_time(m.blocks) > MOST or _is_disturbed(m, watched)),
            "peak_memory_mib": m.memory.get("peak", np.nan),
            "models": certificate.verdict if certificate else NOT_CHECKED,
            "failure": m.failure,
            "measurements": m.file,
        }


def drop_disturbed(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs (rows of ``TrainingRuns.runs``) whose times can be compared. Left out are those disturbed for more than
    half of their time, and those whose epochs until they reached the threshold were disturbed.
    """
    return runs[runs["times_count"]]


def _disturbed_time(blocks: list[Block]) -> float:
    """The share of their time in blocks that were disturbed."""
    wall_s = sum(block.wall_s for block in blocks)
    return sum(block.wall_s for block in blocks if block.disturbed) / wall_s if wall_s else math.nan


def _is_disturbed(m: Measurement, epochs: list[Epoch]) -> bool:
    """Were these epochs of a run disturbed for more than half of their time, or so that they took too long?"""
    numbers = {epoch.epoch for epoch in epochs}
    blocks = [block for block in m.blocks if block.epoch in numbers]
    usual = [block.wall_s / block.steps for block in m.blocks if not block.disturbed]
    step_s = statistics.median(usual) if usual else 0.0
    lost_s = sum(max(0.0, block.wall_s - block.steps * step_s) for block in blocks if block.disturbed)
    return _disturbed_time(blocks) > MOST or lost_s > LOST * sum(block.wall_s for block in blocks)


def _undisturbed_epochs(m: Measurement, epochs: list[Epoch]) -> list[float]:
    """Seconds of those of these epochs that were not disturbed."""
    return [epoch.wall_s for epoch in epochs if not _is_disturbed(m, [epoch])]
