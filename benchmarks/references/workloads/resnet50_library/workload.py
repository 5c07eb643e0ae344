"""What the workload ``resnet50_library`` is: ``resnet50``, written as the community of a framework writes it, under the
same names of weights.
"""

from __future__ import annotations

from dataclasses import replace

from benchlib.workloads import Hyperparameter, Workload
from benchlib.workloads.resnet50.workload import WORKLOAD as RESNET50


def with_library_norms(workload: Workload) -> Workload:
    """Of a library's layers, whose running variance is that of the batch, and ours that of a sample: how fast running
    statistics move can be said, and in the gate they stand still. All else is compared.
    """
    momentum = Hyperparameter(0.9, "share of the old running statistics in the new", minimum=0.0)
    still = (1.0, "the library's running variance is the batch's, the reference's that of a sample: neither moves")
    return replace(
        workload,
        hyperparameters={**workload.hyperparameters, "norm_momentum": momentum},
        gate=replace(workload.gate, settings={**workload.gate.settings, "norm_momentum": still}),
    )


WORKLOAD = replace(with_library_norms(RESNET50), name="resnet50_library", title="ResNet-50 of flax.linen")
