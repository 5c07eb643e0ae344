"""What the workload ``planted`` is: ``cnn``, whose steps take a known share longer."""

from __future__ import annotations

from dataclasses import replace

from benchlib.workloads import Gate, Hyperparameter
from benchlib.workloads.cnn.workload import WORKLOAD as CNN

SLOWER = Hyperparameter(0.0, "share of its time by which a step is longer", minimum=0.0)
NUMBER = Hyperparameter(0, "changes nothing but the name: the same can be compared again, as another", minimum=0)
ONE_FOR_ALL = (0, "it changes nothing, so that one certificate does for all")
WORKLOAD = replace(
    CNN,
    name="planted",
    hyperparameters={**CNN.hyperparameters, "slower": SLOWER, "number": NUMBER},
    gate=Gate({**CNN.gate.settings, "number": ONE_FOR_ALL}),
)
