"""What the workload ``resnet50_v1_library`` is: ``resnet50_v1``, built by the frameworks' own libraries of models,
under the same names of weights.
"""

from __future__ import annotations

from dataclasses import replace

from ..resnet50_library.workload import with_library_norms
from ..resnet50_v1.workload import WORKLOAD as RESNET50_V1

WORKLOAD = replace(
    with_library_norms(RESNET50_V1), name="resnet50_v1_library", title="ResNet-50 v1 of Keras and of Gluon"
)
