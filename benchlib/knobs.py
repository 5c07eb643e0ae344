"""The knobs: settings outside the code that change speed. Every one is declared, with its value, reason and source:
those that several frameworks share here (``SHARED``), those of one framework in its file. None is silent.

Lane ``default`` is the framework as installed; lane ``tuned`` sets those of ``TUNED``. What every worker needs so that
its numbers mean the same as others' is set in both lanes (``ALWAYS``), what the equivalence gate needs in its workers
only (``GATE``). ``threads`` of a condition is a knob too, in either lane. What else a worker's environment holds is in
``benchlib.variables``: a user's shell cannot change a lane.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from benchlib import frameworks, variables, workloads
from benchlib.condition import Condition
from benchlib.errors import BenchlibError, shown, unknown
from benchlib.shown import Shown

if TYPE_CHECKING:
    import pandas as pd


TUNED, ALWAYS, GATE = "tuned", "always", "gate"
"""When a knob is set."""


@dataclass(frozen=True)
class Knob:
    """A setting of a worker: its value, where and when it is set, why, and who says so. It is an environment variable,
    or is set by the framework's session (``by_session``), which knows it by this name.
    """

    name: str
    value: str
    devices: tuple[str, ...]  # empty: all
    reason: str
    source: str
    when: str = TUNED
    convolutions_only: bool = False
    inference_only: bool = False
    modes: tuple[str, ...] = ()  # empty: all
    by_session: bool = False
    same_numbers: bool = False  # of what is set for the gate: does it change no number?

    def applies(self, condition: Condition) -> bool:
        return (
            (not self.devices or condition.device in self.devices)
            and (not self.modes or condition.mode in self.modes)
            and (
                not self.convolutions_only
                or _convolves(workloads.load(condition.workload).weights, json.dumps(condition.hyperparameters))
            )
            and (not self.inference_only or workloads.load(condition.workload).evaluates)
        )


@functools.lru_cache(maxsize=1024)
def _convolves(weights: Callable[[workloads.Values], dict[str, workloads.Weight]], values: str) -> bool:
    """Has a weight the four dimensions (of volumes: five) of a convolution's kernel? Hyperparameters as JSON."""
    return any(len(one.shape) >= 4 for one in weights(json.loads(values)).values())


SCRATCH = "{scratch}"
"""In a knob's value: the worker's own scratch directory, empty at its start."""

CORES = "{cores}"
"""In a knob's value: how many cores benchlib may use, which its workers get."""

_MALLOC = "glibc manual, 'Memory Allocation Tunables'"

SHARED = (
    Knob(
        "MALLOC_MMAP_THRESHOLD_",
        "4294967296",
        ("cpu",),
        "large buffers stay in the heap instead of being mapped anew at every step; processes then differ far less",
        _MALLOC,
    ),
    Knob(
        "MALLOC_TRIM_THRESHOLD_",
        "68719476736",
        ("cpu",),
        "freed memory is kept for the next step instead of going back to the system",
        _MALLOC,
    ),
    Knob(
        "GLIBC_TUNABLES",
        "glibc.malloc.hugetlb=1",
        ("cpu",),
        "the heap asks for transparent huge pages: fewer page faults, and less luck in where buffers lie",
        _MALLOC,
    ),
    Knob(
        "HOME",
        SCRATCH,
        (),
        "settings and caches in the user's home (Keras's keras.json, Triton's kernels) do not reach a worker",
        "Keras documentation, 'Configuring your backend'; Python documentation, 'os.path.expanduser'",
        ALWAYS,
    ),
    Knob(
        "PYTHONUNBUFFERED",
        "1",
        (),
        "what a worker has printed can be told when it dies: Python would still hold it in a buffer",
        "Python documentation, 'Command line and environment'",
        ALWAYS,
    ),
    Knob(
        "CUDA_DEVICE_ORDER",
        "PCI_BUS_ID",
        ("cuda",),
        "CUDA numbers the GPUs as the driver does, so that the GPU watched is the GPU used",
        "CUDA C++ Programming Guide, 'CUDA Environment Variables'",
        ALWAYS,
    ),
    Knob(
        "NVIDIA_TF32_OVERRIDE",
        "0",
        ("cuda",),
        "in the gate only: NVIDIA's libraries compute fp32 as fp32, so that rounding to TF32 (10 bits after the point) "
        "does not hide another model",
        "NVIDIA, 'Accelerating AI Training with NVIDIA TF32 Tensor Cores'",
        GATE,
    ),
    Knob(
        "OMP_WAIT_POLICY",
        "passive",
        (),
        "in the gate only, where two processes are at work: threads that wait for others of their process do not spin, "
        "which keeps the other process from its core. It changes no number",
        "OpenMP specification; PyTorch's reference of resnet50 took four times as long without",
        GATE,
        same_numbers=True,
    ),
)

THREADS_REASON = (
    "the condition asks for so many threads: OpenMP's limit, and the worker is bound to as many cores "
    "(MindSpore's own thread pool heeds the binding only)"
)

WORKER_PATH_REASON = "the user has workers import from these folders, too"

OLD_REASON = "set by the benchlib that measured it; this one does not declare it"


def declared(framework: str) -> list[Knob]:
    """All knobs there are for a framework; of one that is not there any more, those that all have. A BenchlibError if
    its file declares one in another way.
    """
    own = []
    for arguments in frameworks.knobs(framework) if framework in frameworks.names() else ():
        try:
            own.append(Knob(**arguments))
        except TypeError as error:
            known = ", ".join(field.name for field in fields(Knob))
            raise BenchlibError(
                f"{frameworks.file(framework)}: KNOBS: {shown(arguments)}: {error}; a knob is a dict of {known}"
            ) from None
        if own[-1].when not in (TUNED, ALWAYS, GATE):
            where = f"{frameworks.file(framework)}: KNOBS: {own[-1].name}"
            raise BenchlibError(f"{where}: {unknown('when', own[-1].when, (TUNED, ALWAYS, GATE))}")
    return [*SHARED, *own]


def of(condition: Condition) -> dict[str, str]:
    """The knobs set for a condition: values by name; ``SCRATCH`` in them is not filled in."""
    cores = str(len(os.sched_getaffinity(os.getpid())))  # of the process: a thread of the gate may be bound to a few
    knobs = {knob.name: knob.value.replace(CORES, cores) for knob in _set(condition)}
    for name in condition.without:
        if name not in knobs:
            raise BenchlibError(f"{condition}: without: {unknown('knob of this condition', name, knobs)}")
        del knobs[name]
    if condition.threads is not None:
        knobs["OMP_NUM_THREADS"] = str(condition.threads)
    if folders := variables.worker_folders(os.environ):
        knobs[variables.WORKER_PATH] = os.pathsep.join(folders)
    return knobs


def of_gate(condition: Condition) -> dict[str, str]:
    """The environment variables that the equivalence gate sets beside the condition's knobs."""
    gate = [knob for knob in declared(condition.framework) if knob.when == GATE]
    return {knob.name: knob.value for knob in gate if knob.applies(condition)}


def neutralising(condition: Condition) -> dict[str, str]:
    """Of what the gate sets that which changes numbers, and why it is set, by name."""
    gate = [knob for knob in declared(condition.framework) if knob.when == GATE and not knob.same_numbers]
    return {knob.name: knob.reason for knob in gate if knob.applies(condition)}


def environment(condition: Condition, scratch: Path, inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """A worker's environment: what it may inherit, and the condition's knobs."""
    knobs = {name: value.replace(SCRATCH, str(scratch)) for name, value in of(condition).items()}
    in_environment = {name: value for name, value in knobs.items() if name not in _by_session(condition)}
    return {**variables.passed(inherited), **in_environment}


def for_session(condition: Condition) -> dict[str, str]:
    """Of the condition's knobs those that the framework's session sets."""
    by_session = _by_session(condition)
    return {name: value for name, value in of(condition).items() if name in by_session}


def _set(condition: Condition) -> list[Knob]:
    """Those of the condition's lane."""
    when = {ALWAYS, condition.lane}
    return [knob for knob in declared(condition.framework) if knob.when in when and knob.applies(condition)]


def _by_session(condition: Condition) -> set[str]:
    return {knob.name for knob in _set(condition) if knob.by_session}


class Process(Protocol):
    """What has a record of what was set in a worker: a measurement, a certificate."""

    condition: Condition
    knobs: dict[str, str]
    left_out: list[str]


def ledger(processes: Iterable[Process]) -> pd.DataFrame:
    """Every knob that was set in any of the processes, a row per knob, framework, environment, device and lane."""
    import pandas as pd

    others = {
        "OMP_NUM_THREADS": (THREADS_REASON, "OpenMP specification"),
        variables.WORKER_PATH: (WORKER_PATH_REASON, "the environment of who measured"),
    }
    rows = {}
    for process in processes:
        of = process.condition
        reasons = {**others, **{knob.name: (knob.reason, knob.source) for knob in declared(of.framework)}}
        for name, value in process.knobs.items():
            place = (of.framework, of.environment, of.device, of.lane)
            rows[(name, value, *place, *reasons.get(name, (OLD_REASON, "its record")))] = None
    columns = ["name", "value", "framework", "environment", "device", "lane", "reason", "source"]
    return pd.DataFrame(sorted(rows), columns=columns)


def left_out(processes: Iterable[Process]) -> list[str]:
    """The names of variables that did not reach one of the processes, and could have mattered."""
    return sorted({name for process in processes for name in process.left_out})


@dataclass(frozen=True, repr=False)
class Ledger(Shown):
    """The ledger of the knobs that were set in some processes, as an object that shows itself."""

    processes: list[Process]

    @property
    def frame(self) -> pd.DataFrame:
        """As of :func:`ledger`."""
        return ledger(self.processes)

    @property
    def left_out(self) -> list[str]:
        """As of :func:`left_out`."""
        return left_out(self.processes)
