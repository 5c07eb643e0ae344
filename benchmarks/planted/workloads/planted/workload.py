"""What the workload ``planted`` is: ``cnn``, whose steps take a known share longer."""

from __future__ import annotations

from dataclasses import replace

from benchlib.workloads import Hyperparameter
from benchlib.workloads.cnn.workload import WORKLOAD as CNN

SLOWER = Hyperparameter(0.0, "share of its time by which a step is longer", minimum=0.0)
WORKLOAD = replace(CNN, name="planted", hyperparameters={**CNN.hyperparameters, "slower": SLOWER})
