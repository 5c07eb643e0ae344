"""A lab without the planner."""

import pytest

from benchlib.condition import Condition
from benchlib.equivalence.certificate import Certificate, Check
from benchlib.lab import Lab
from benchlib.stats import comparison as comparison_module
from benchlib.stats.comparison import Comparison
from benchlib.stats.planner import PRECISION, Plan


def all_the_same(conditions: list[Condition]) -> dict[str, Certificate]:
    """In place of :meth:`Lab.certify`, which would refuse what misbehaves before it is timed."""
    check = Check(name="outputs", difference=0.0, worst=0.0, at="", tolerance=0.0)
    return {one.key: Certificate(condition=one, reference=one, checks=[check]) for one in conditions}


class FixedLab(Lab):
    """A lab that measures so many repetitions and rounds: what the planner makes of it is tested elsewhere."""

    def compare(self, conditions: list[Condition], *, repetitions: int, rounds: int, block_s: float) -> Comparison:
        """Measure conditions together."""

        def plan(done, precision, budget_s, pilot, disturbed):
            return Plan(None if len(done) < repetitions else PRECISION, rounds, 0.1, 0.0, repetitions - len(done), 0.0)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(comparison_module, "plan", plan)
            patch.setattr(Comparison, "lacks_pilot", lambda self, own: False)
            return super().compare(conditions, block_s=block_s)
