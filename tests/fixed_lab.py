"""A lab without the planner."""

from __future__ import annotations

import pytest

from benchlib.analysis import comparison as comparison_module
from benchlib.analysis.comparison import Comparison
from benchlib.analysis.planner import PRECISION, Plan
from benchlib.condition import Condition
from benchlib.lab import Lab


class FixedLab(Lab):
    """A lab that measures so many repetitions and rounds: what the planner makes of it is tested elsewhere."""

    def compare(self, conditions: list[Condition], *, repetitions: int, rounds: int, block_s: float) -> Comparison:
        """Measure conditions together."""

        def plan(done, precision, budget_s, pilot, peers, disturbed):
            return Plan(None if len(done) < repetitions else PRECISION, rounds, 0.1, 0.0, repetitions - len(done), 0.0)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(comparison_module, "plan", plan)
            return super().compare(conditions, block_s=block_s)
