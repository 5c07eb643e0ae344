"""The machine's own limits: the fastest matrix product or convolution and the fastest copy that any framework here
gets out of it. The longer of the times that a step takes at these rates is its roof (Williams, Waterman and Patterson,
"Roofline", CACM 2009).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import Field

from benchlib import frameworks, workloads
from benchlib.cache import Result
from benchlib.condition import Condition
from benchlib.errors import Failure
from benchlib.provenance import fingerprint, knobs
from benchlib.runner import availability, recording
from benchlib.runner.jobs import INITIAL_SEED, prepare_job
from benchlib.runner.processes import WorkerFailed, WorkerProcess

SIZES, LARGE_SIZES = (512, 1024, 2048), (4096, 8192)  # of square matrices, on the CPU and elsewhere
CHANNELS = (64, 128)  # in and out, of convolutions: 3x3 over 16 images of 32x32
COPIED, LARGE_COPIED = (2**20, 2**22, 2**24), (2**26, 2**28)  # numbers, on the CPU and elsewhere; the best fit a cache
BLOCKS, BLOCK_S, WARM_UP_LIMIT_S = 5, 0.1, 5.0


class Ceiling(Result):
    """The limits of one device in one precision; ``best`` says for each limit which condition reached it."""

    device: str
    precision: str
    multiply_adds_per_s: float  # 0: none could be measured, as the next
    bytes_per_s: float
    best: dict[str, str] = Field(default_factory=dict)
    failures: list[str] = Field(default_factory=list)

    def roof_s(self, condition: Condition) -> float:
        """The least seconds that a step of ``condition`` could take; nan where its work or a limit is not known."""
        work = workloads.load(condition.workload).step_work(condition.hyperparameters)
        if work is None or not (self.multiply_adds_per_s and self.bytes_per_s):
            return math.nan
        times = (work.multiply_adds / self.multiply_adds_per_s, work.least_bytes / self.bytes_per_s)
        return condition.batch_size * max(times)


def conditions(device: str, precision: str, within: Iterable[str]) -> list[Condition]:
    """The conditions to time: each framework that can use the device in one of the environments, in the tuned lane."""
    matrices, copied = (SIZES, COPIED) if device == "cpu" else (LARGE_SIZES, LARGE_COPIED)
    sizes_of = {"linear": matrices, "copy": copied, "conv2d": CHANNELS}
    chosen = {"device": device, "precision": precision, "lane": "tuned"}
    return [
        _condition(workload, size, framework=framework, environment=environment, **chosen)
        for environment, framework in itertools.product(within, frameworks.names())
        if availability.why_absent(framework, device, environment) is None
        for workload, sizes in sizes_of.items()
        if framework in workloads.load(workload).frameworks()
        for size in sizes
    ]


def measure(device: str, precision: str, within: Iterable[str], inputs: Path, patience_s: float) -> Ceiling:
    """Time all in a fresh worker of each framework in each environment, and of each set of its knobs."""
    best = {"multiply_adds": (0.0, ""), "least_bytes": (0.0, "")}
    failures: list[Failure] = []
    alike: dict[tuple, list[Condition]] = {}
    for condition in conditions(device, precision, within):
        alike.setdefault((condition.implementation, *knobs.find(condition).items()), []).append(condition)
    for group in alike.values():
        try:
            for condition, rate in _steps_per_second(group, inputs, patience_s):
                work = workloads.load(condition.workload).step_work(condition.hyperparameters)
                for name in best:
                    best[name] = max(best[name], (rate * condition.batch_size * getattr(work, name), str(condition)))
        except WorkerFailed as failure:
            failures.append(failure.failure)
    rates = {"multiply_adds_per_s": best["multiply_adds"][0], "bytes_per_s": best["least_bytes"][0]}
    failed = {"failures": [str(one) for one in failures], "crashed": not all(one.is_refusal for one in failures)}
    labels = {name: label for name, (_, label) in best.items()}
    return Ceiling(device=device, precision=precision, best=labels, **rates, **failed)


def _steps_per_second(group: list[Condition], inputs: Path, patience_s: float) -> Iterator[tuple[Condition, float]]:
    """Yield the steps per second of conditions that share a worker."""
    known: dict[str, Path] = {}
    with WorkerProcess(group[0], INITIAL_SEED, patience_s) as worker:
        worker.finish_open()
        for condition in group:
            worker.ask("build", **prepare_job(condition, INITIAL_SEED, inputs).document())
            worker.ask("first_step")
            step_s = min(worker.ask("warm_up", limit_s=WARM_UP_LIMIT_S)["times"])
            steps = max(1, round(BLOCK_S / step_s))
            wall_s = min(worker.ask("block", steps=steps)["wall_s"] for _ in range(BLOCKS))
            known |= fingerprint.files(condition, "ceiling")
            recording.require_hashed(worker, known)
            yield condition, steps / wall_s


def _condition(workload: str, size: int, **choices: str) -> Condition:
    batch_size, values = {
        "copy": (1, {"elements": size}),
        "conv2d": (16, {"in_channels": size, "out_channels": size, "image_size": 32, "passes": "forward"}),
        "linear": (size, {"in_features": size, "out_features": size, "passes": "forward"}),
    }[workload]
    modes = frameworks.modes(choices["framework"])
    mode = "eager" if workload == "copy" and "eager" in modes else modes[0]  # there is nothing to compile in a copy
    return Condition(workload=workload, batch_size=batch_size, hyperparameters=values, mode=mode, **choices)
