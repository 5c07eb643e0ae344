"""The tolerances of the equivalence gate: the differences that it allows."""

from __future__ import annotations

from collections.abc import Mapping

from benchlib import frameworks, workloads
from benchlib.condition import Condition


def tolerances(condition: Condition) -> Mapping[str, float]:
    """The largest relative differences allowed from the truth, by kind of quantity; one that is not named is not
    compared. In fp32 ``FACTOR`` times the reference's own is allowed, too. Mixed precision is held against the
    reference.
    """
    if condition.precision == "fp64":
        rounds = frameworks.rounds(condition.framework)
        return {name: max(EXACT, rounds if name in STEPPED else 0.0) for name in TOLERANCES if name not in UNPROBED}
    if condition.precision != "fp32":
        return MIXED_TOLERANCES[condition.precision.partition("-")[0]]
    plain = {"cpu": TOLERANCES, "cuda": CUDA_TOLERANCES}.get(condition.device, HALF_TOLERANCES)
    deep = DEEP if workloads.load(condition.workload).gate.fed else {}
    return {name: one * deep.get(name, 1) for name, one in plain.items()}


def single_tolerance(condition: Condition) -> float:
    """The tolerance of what a kink changes in a trial that has no other beside it; 0 where there are no kinks."""
    if condition.precision != "fp32":
        return 0.0
    return SINGLE * (DEEP["single"] if workloads.load(condition.workload).gate.fed else 1)


def dropout_tolerances(condition: Condition) -> Mapping[str, float]:
    """The tolerances for dropout and for the length of steps: see ``DROPOUT_TOLERANCES``."""
    deep = DEEP if workloads.load(condition.workload).gate.fed else {}
    allowed = {name: one * deep.get(name, 1) for name, one in DROPOUT_TOLERANCES.items()}
    if condition.device != "cpu":  # an accelerator may sum in another order each time (index_add)
        allowed["evaluation repeats"] = tolerances(condition)["repetition"]
    return allowed if condition.precision == "fp32" else {**allowed, **MIXED_DROPOUT_TOLERANCES}


TOLERANCES = {
    "outputs": 1e-5,
    "gradients": 1e-4,
    "first loss": 1e-5,
    "losses": 1e-5,
    "updates": 1e-4,  # the steps' changes of the trained weights
    "state": 1e-4,  # their changes of the rest, such as running statistics
    "evaluation outputs": 1e-4,
    "predictions": 0.0,  # the share that is not the same
    "repetition": 1e-5,  # the first trial against itself
    "optimizer": 1e-3,  # its changes from given gradients, see ``compare._probe_differences``
}
"""Largest relative difference allowed on the CPU, in fp32. Between frameworks with equal models it is about 1e-6."""

EXACT = 1e-9
"""The same in double precision, where rounding and kinks have no say."""

STEPPED = frozenset({"losses", "updates", "state", "evaluation outputs"})
"""What an optimizer's or a running statistic's own rounding changes: see ``frameworks.rounds``."""

UNPROBED = frozenset({"optimizer", "predictions"})  # fp32 shows them

FACTOR = 4.0
"""So many times as far from the truth as the reference in fp32 a condition in fp32 may be: chance has rounded both."""

KINKED = frozenset({"gradients", "updates"})
"""What a kink, such as a ReLU's input within rounding of 0, changes at once: the middle of an array's trials counts."""

SINGLE = 2e-2
"""The difference allowed of these, by Euclidean norm, in a trial with no other beside it, such as the largest batch:
some numbers meet a kink. One in a batch of 64 moved a bias of ``resnet50`` by 8 % of its largest gradient (``DEEP``).
"""

MANY = 4.0
"""Times that outputs, losses and the like of the largest batch may be farther off: the largest of many numbers is."""

SATURATED = 1e-3
"""The tolerance of outputs, losses and the like from large weights, which make rounding grow: to 1.8e-4 in MindSpore's
``seq2seq``, and to 1.5e-3 in ``googlenet`` behind a step (``DEEP``). A cut makes a hundredth or more.
"""

TIE = 1e-4  # outputs that are nearer, as a share of the largest, are as likely

ZERO = 5e-2
"""The tolerance of a gradient that is 0 in truth, as of a bias that batch normalisation cancels, and of its updates.
Rounding leaves up to 8e-3 of it, relative to ``NEGLIGIBLE`` of the largest gradient: it rounds equal sums alike.
"""

DEEP = {"gradients": 5, "updates": 5, "single": 5, "8 steps with dropout": 3, "8 steps in a row": 10}
"""So many times that is allowed for a model that makes rounding grow (``Gate.fed``), such as ``googlenet``."""

CUDA_TOLERANCES = {name: 10 * allowed for name, allowed in TOLERANCES.items()}
"""The same on an NVIDIA GPU, which sums in other orders, without TF32. Not set from a run; docs/gallery/gpu has one."""

HALF_TOLERANCES = {
    **dict.fromkeys(("outputs", "first loss", "losses", "repetition"), 1e-2),
    **dict.fromkeys(("gradients", "updates", "state", "evaluation outputs"), 3e-2),
    **{"predictions": 0.0, "optimizer": 1e-3},
}
"""The same on other devices, such as an NPU, which may round fp32 products to 10 bits (HF32). Never run on Ascend."""

MIXED_TOLERANCES = {
    "bf16": {
        "outputs": 0.06,
        "gradient size": 0.5,
        "update size": 0.25,
        "losses": 0.06,
        "state": 0.5,
        "evaluation outputs": 0.25,
        "repetition": 0.06,
    },
    "fp16": {"outputs": 0.008, "gradient size": 0.5, "update size": 0.25, "losses": 0.06, "repetition": 0.008},
}
"""The largest relative differences that mixed precision may have from fp32: of outputs about 16 roundings. Of gradients
each array's Euclidean norm is compared, and of the steps the length of the way that all trained weights together go.
Rounding as coarse as that meets kinks in every batch and turns single gradients another way, those of ``cnn`` by 0.1 of
the largest. Found are a wrong cast, a loss scaled twice, gradients not unscaled, a missing step; words are left out.
"""

DROPOUT_TOLERANCES = {
    "dropout places": 0.0,  # more or fewer than the workload declares
    "dropout sizes": 0.0,  # more or fewer numbers that they are given than the reference's
    "dropout inputs": 0.1,  # relative difference of these, root mean square; other masks in places before make 2 %
    "dropout share": 5.0,  # standard deviations by which the share of zeros is off
    "dropout scale": 1e-4,  # relative difference of the numbers left from their inputs times 1 / (1 - p)
    "dropout masks": 6.0,  # standard deviations by which neighbours are dropped together more or less often
    "dropout repeats": 0.0,  # the same dropped in two passes, or in two places
    "dropout in steps": 1.0,  # times the losses of steps from the same weights are less apart than ``DROPS``
    # By how much steps in a row move weights (three with dropout: all together) farther than the reference's, or less
    # far. Three with other masks do so by up to 0.13 in all workloads, without momentum by 0.87.
    "3 steps with dropout": 0.5,
    "8 steps with dropout": 1.0,
    "3 steps in a row": 0.05,
    "8 steps in a row": 0.05,
    "evaluation repeats": 0.0,  # relative difference of two evaluations of the same batch
}
"""Tolerances of dropout at work, and of steps in a row."""

MIXED_DROPOUT_TOLERANCES = {"dropout scale": 0.03, "3 steps in a row": 0.25, "8 steps in a row": 0.5}
"""The tolerances that differ in mixed precision. The factor 1 / (1 - p) and the number that it scales are rounded: up
to 0.01 in ``cnn``, ``gcn``, ``seq2seq`` and ``bert``. Steps of ``resnet50`` in JAX differ by up to 0.08 and 0.21.
"""

DROPS = 2e-5
"""The least relative difference of losses from the same weights and batch with other dropout; rounding makes 1e-6."""

TRAINING = {"cpu": 1e-4, "cuda": 1e-3}
"""The relative difference allowed of a loss in a longer training, where rounding adds up over its steps. 50 steps of
``cnn`` and ``lstm`` in MindSpore stay within 6e-7 of PyTorch's. On other devices 3e-2.
"""

NEGLIGIBLE = 1e-3
"""Arrays are compared relative to their own largest value, or to this share of the largest in their group if that is
more. The gradient of a bias that the next layer cancels is rounding noise, and has no relative precision.
"""

ROUNDING = 2.0**-22
"""The share of a weight's size by which two frameworks may part in each step: each rounds its decay and its update."""

ROUNDING_EXACT = 2.0**-51  # the same in double precision
