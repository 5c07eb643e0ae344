"""The machine's own limits: the fastest matrix product or convolution and the fastest copy that any framework here
gets out of it, each the best of some blocks.

A step cannot be faster than its multiply-adds at the rate of the fastest product or convolution, nor than the bytes
that it has to move at the rate of the fastest copy: the longer of the two times is its roof (Williams, Waterman and
Patterson, "Roofline", CACM 2009).
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable
from pathlib import Path

from pydantic import Field

from benchlib import frameworks, workloads
from benchlib.cache import Block, Result
from benchlib.condition import Condition
from benchlib.errors import Failure
from benchlib.provenance import fingerprint, knobs
from benchlib.runner import availability, recording
from benchlib.runner.jobs import INITIAL_SEED, prepare_job
from benchlib.runner.processes import WorkerFailed, WorkerProcess

SIZES, LARGE_SIZES = (512, 1024, 2048), (4096, 8192)
"""Of the square matrices whose product is timed, on the CPU and elsewhere."""

CHANNELS = (64, 128)
"""In and out, of the convolutions that are timed: 3x3 over 16 images of 32x32."""

COPIED, LARGE_COPIED = (2**20, 2**22, 2**24), (2**26, 2**28)
"""Numbers of the arrays that are copied, on the CPU (4 to 64 MiB) and elsewhere. The best often fits a cache."""

BLOCKS, BLOCK_S, WARM_UP_LIMIT_S = 5, 0.1, 5.0


class Ceiling(Result):
    """Of one device in one precision; ``best`` says for each limit which condition reached it."""

    device: str
    precision: str
    multiply_adds_per_s: float  # 0: none could be measured, as the next
    bytes_per_s: float
    best: dict[str, str] = Field(default_factory=dict)
    failures: list[str] = Field(default_factory=list)

    def __str__(self) -> str:
        rates = {"multiply_adds": f"{self.multiply_adds_per_s / 1e9:.4g} billion multiply-adds/s"}
        rates["least_bytes"] = f"{self.bytes_per_s / 2**30:.4g} GiB/s"
        lines = [f"{rate} by {self.best.get(name) or 'nothing'}" for name, rate in rates.items()]
        failed = [f"failed: {failure}" for failure in self.failures]
        return "\n  ".join([f"The most of {self.device} in {self.precision}:", *lines, *failed])

    def roof_s(self, condition: Condition) -> float:
        """The least seconds that a step of ``condition`` could take; nan where its work or a limit is not known."""
        work = workloads.load(condition.workload).step_work(condition.hyperparameters)
        if work is None or not (self.multiply_adds_per_s and self.bytes_per_s):
            return math.nan
        times = (work.multiply_adds / self.multiply_adds_per_s, work.least_bytes / self.bytes_per_s)
        return condition.batch_size * max(times)


def conditions(device: str, precision: str, within: Iterable[str]) -> list[Condition]:
    """What is timed: each framework that can use the device in one of these environments, in the tuned lane."""
    choices = {"device": device, "precision": precision, "lane": "tuned"}
    every = []
    for environment, framework in itertools.product(within, frameworks.names()):
        if availability.available(framework, device, environment) is not None:
            continue
        chosen = {"framework": framework, "environment": environment, **choices}
        matrices, copied = (SIZES, COPIED) if device == "cpu" else (LARGE_SIZES, LARGE_COPIED)
        sizes_of = {"linear": matrices, "copy": copied, "conv2d": CHANNELS}
        for workload, sizes in sizes_of.items():
            if framework in workloads.load(workload).frameworks():
                every += [_condition(workload, size, **chosen) for size in sizes]
    return every


def measure(device: str, precision: str, within: Iterable[str], inputs: Path, patience_s: float) -> Ceiling:
    """Time all in a fresh worker of each framework in each environment, and of each set of its knobs."""
    best = {"multiply_adds": (0.0, ""), "least_bytes": (0.0, "")}
    failures: list[Failure] = []
    alike: dict[tuple, list[Condition]] = {}
    for condition in conditions(device, precision, within):
        alike.setdefault((condition.implementation, *knobs.of(condition).items()), []).append(condition)
    for group in alike.values():
        rates, failure = _steps_per_second(group, inputs, patience_s)
        failures += [failure] if failure else []
        for condition, rate in rates.items():
            work = workloads.load(condition.workload).step_work(condition.hyperparameters)
            for name in best:
                best[name] = max(best[name], (rate * condition.batch_size * getattr(work, name), str(condition)))
    return Ceiling(
        device=device,
        precision=precision,
        multiply_adds_per_s=best["multiply_adds"][0],
        bytes_per_s=best["least_bytes"][0],
        best={name: label for name, (_, label) in best.items()},
        failures=[str(one) for one in failures],
        crashed=not all(one.is_refusal for one in failures),
    )


def _steps_per_second(
    group: Iterable[Condition], inputs: Path, patience_s: float
) -> tuple[dict[Condition, float], Failure | None]:
    """Of conditions that share a worker; and what failed."""
    group = list(group)
    rates: dict[Condition, float] = {}
    known: dict[str, Path] = {}
    try:
        with WorkerProcess(group[0], INITIAL_SEED, patience_s) as worker:
            worker.opened()
            for condition in group:
                worker.ask("build", **prepare_job(condition, INITIAL_SEED, inputs).document())
                worker.ask("first_step")
                step_s = min(worker.ask("warm_up", limit_s=WARM_UP_LIMIT_S)["times"])
                steps = max(1, round(BLOCK_S / step_s))
                blocks = [_block(worker, steps) for _ in range(BLOCKS)]
                known |= fingerprint.files(condition, "ceiling")
                recording.require_hashed(worker, known)
                rates[condition] = max(block.steps / block.wall_s for block in blocks)
    except WorkerFailed as failure:
        return rates, failure.failure
    return rates, None


def _block(worker: WorkerProcess, steps: int) -> Block:
    started = time.perf_counter()
    answer = worker.ask("block", steps=steps)
    return recording.checked(Block(round=-1, position=0, **answer), time.perf_counter() - started, alone=True)


def _condition(workload: str, size: int, **choices: str) -> Condition:
    batch_size, values = {
        "copy": (1, {"elements": size}),
        "conv2d": (16, {"in_channels": size, "out_channels": size, "image_size": 32, "passes": "forward"}),
        "linear": (size, {"in_features": size, "out_features": size, "passes": "forward"}),
    }[workload]
    modes = frameworks.modes(choices["framework"])
    mode = "eager" if workload == "copy" and "eager" in modes else modes[0]  # there is nothing to compile in a copy
    return Condition(workload=workload, batch_size=batch_size, hyperparameters=values, mode=mode, **choices)
