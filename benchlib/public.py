"""The public names, as ``from benchlib import Lab`` gives them; their results show themselves (``benchlib.reprs``)."""

import benchlib.reprs  # noqa: F401
from benchlib.cluster.lab import Lab as Lab
from benchlib.condition import Condition as Condition
from benchlib.equivalence.certificate import Certificate as Certificate
from benchlib.matching.commands import workload_from as workload_from
from benchlib.stats.comparison import Comparison as Comparison
from benchlib.stats.intervals import Interval as Interval
from benchlib.stats.training_runs import TrainingRuns as TrainingRuns
