"""The knobs: settings outside the code that change speed, each with its value, reason and source. Those that several
frameworks share are here (``SHARED``), those of one framework in its file. ``threads`` of a condition is a knob, too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from benchlib import env_vars, frameworks, workloads
from benchlib.condition import Condition
from benchlib.errors import BenchlibError, no_such, quote
from benchlib.provenance import machine
from benchlib.shown import Shown
from benchlib.validation import Strict

if TYPE_CHECKING:
    import pandas as pd

TUNED, ALWAYS, GATE = "tuned", "always", "gate"  # when a knob is set: in that lane, in both, in the gate's workers only


class Knob(Strict):
    """A setting of a worker, an environment variable or one of the framework's session."""

    name: str
    value: str
    devices: tuple[str, ...] = ()  # empty: all
    reason: str
    source: str
    when: Literal["tuned", "always", "gate"] = TUNED
    convolutions_only: bool = False
    inference_only: bool = False
    modes: tuple[str, ...] = ()  # empty: all
    by_session: bool = False  # which knows it by this name
    same_numbers: bool = False  # of a knob that is set for the gate: does it change no number?

    def applies(self, condition: Condition) -> bool:
        if (self.devices and condition.device not in self.devices) or (self.modes and condition.mode not in self.modes):
            return False
        workload = workloads.load(condition.workload)
        if self.inference_only and not workload.evaluates:
            return False
        weights = workload.weights(condition.hyperparameters).values()
        return not self.convolutions_only or any(len(one.shape) >= 4 for one in weights)  # of a convolution's kernel


SCRATCH = "{scratch}"  # in a knob's value: the worker's own scratch directory, empty at its start
CORES = "{cores}"  # in a knob's value: how many cores benchlib may use, which its workers get

_MALLOC = {"devices": ("cpu",), "source": "glibc manual, 'Memory Allocation Tunables'"}

SHARED = (
    Knob(
        name="MALLOC_MMAP_THRESHOLD_",
        value="4294967296",
        reason="large buffers stay in the heap instead of being mapped anew at every step; processes differ far less",
        **_MALLOC,
    ),
    Knob(
        name="MALLOC_TRIM_THRESHOLD_",
        value="68719476736",
        reason="freed memory is kept for the next step instead of going back to the system",
        **_MALLOC,
    ),
    Knob(
        name="GLIBC_TUNABLES",
        value="glibc.malloc.hugetlb=1",
        reason="the heap asks for transparent huge pages: fewer page faults, and less luck in where buffers lie",
        **_MALLOC,
    ),
    Knob(
        name="HOME",
        value=SCRATCH,
        reason="settings and caches in the user's home (Keras's keras.json, Triton's kernels) do not reach a worker",
        source="Keras documentation, 'Configuring your backend'; Python documentation, 'os.path.expanduser'",
        when=ALWAYS,
    ),
    Knob(
        name="PYTHONUNBUFFERED",
        value="1",
        reason="a worker's output can be shown when it dies: Python would still hold it in a buffer",
        source="Python documentation, 'Command line and environment'",
        when=ALWAYS,
    ),
    Knob(
        name="CUDA_DEVICE_ORDER",
        value="PCI_BUS_ID",
        devices=("cuda",),
        reason="CUDA numbers the GPUs as the driver does, so that the GPU watched is the GPU used",
        source="CUDA C++ Programming Guide, 'CUDA Environment Variables'",
        when=ALWAYS,
    ),
    Knob(
        name="NVIDIA_TF32_OVERRIDE",
        value="0",
        devices=("cuda",),
        reason="in the gate only: fp32 is computed as fp32; rounding to TF32, of 10 bits, could hide another model",
        source="NVIDIA, 'Accelerating AI Training with NVIDIA TF32 Tensor Cores'",
        when=GATE,
    ),
    Knob(
        name="OMP_WAIT_POLICY",
        value="passive",
        reason="in the gate only, where two processes are at work: waiting threads do not spin. It changes no number",
        source="OpenMP specification; PyTorch's reference of resnet50 took four times as long without",
        when=GATE,
        same_numbers=True,
    ),
)

UNDECLARED = {  # reason and source
    "OMP_NUM_THREADS": (
        "as the condition asks; the worker is bound to as many cores, too (all that MindSpore's own pool heeds)",
        "OpenMP specification",
    ),
    env_vars.WORKER_PATH: ("the user has workers import from these folders, too", "the environment of who measured"),
}
OLD = ("set by the benchlib that measured it; this one does not declare it", "its record")


def declared_knobs(framework: str) -> list[Knob]:
    """All knobs there are for a framework; of one that is not there any more, those that all have."""
    own = []
    for arguments in frameworks.knobs(framework) if framework in frameworks.names() else ():
        try:
            own.append(Knob(**arguments))
        except (TypeError, BenchlibError) as error:
            raise BenchlibError(f"{frameworks.file(framework)}: KNOBS: {quote(arguments)}: {error}") from None
    return [*SHARED, *own]


def find(condition: Condition) -> dict[str, str]:
    """The knobs set for a condition: values by name; ``SCRATCH`` in them is not filled in."""
    cores = str(len(machine.cpus()))
    knobs = {knob.name: knob.value.replace(CORES, cores) for knob in _select_knobs(condition, {ALWAYS, condition.lane})}
    for name in condition.without:
        if name not in knobs:
            raise BenchlibError(f"{condition}: without: {no_such('knob of this condition', name, knobs)}")
        del knobs[name]
    if condition.threads is not None:
        knobs["OMP_NUM_THREADS"] = str(condition.threads)
    if folders := env_vars.worker_folders(os.environ):
        knobs[env_vars.WORKER_PATH] = os.pathsep.join(folders)
    return knobs


def of_gate(condition: Condition) -> dict[str, str]:
    """The environment variables that the equivalence gate sets beside the condition's knobs."""
    return {knob.name: knob.value for knob in _select_knobs(condition, {GATE})}


def neutralising_reasons(condition: Condition) -> dict[str, str]:
    """The settings of the gate that change numbers, by name, with the reason of each."""
    return {knob.name: knob.reason for knob in _select_knobs(condition, {GATE}) if not knob.same_numbers}


def environment(condition: Condition, scratch: Path, inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """A worker's environment: the variables that it may inherit, and the condition's knobs."""
    others = find(condition).items() - for_session(condition).items()
    return {**env_vars.for_worker(inherited), **{name: value.replace(SCRATCH, str(scratch)) for name, value in others}}


def for_session(condition: Condition) -> dict[str, str]:
    """The condition's knobs that the framework's session sets."""
    by_session = {knob.name for knob in _select_knobs(condition, {ALWAYS, condition.lane}) if knob.by_session}
    return {name: value for name, value in find(condition).items() if name in by_session}


def _select_knobs(condition: Condition, when: set[str]) -> list[Knob]:
    return [knob for knob in declared_knobs(condition.framework) if knob.when in when and knob.applies(condition)]


@dataclass(frozen=True, repr=False)
class Ledger(Shown):
    """The knobs that were set in some processes: measurements, or certificates."""

    processes: list[Any]

    @property
    def frame(self) -> pd.DataFrame:
        """A row per knob, framework, environment, device and lane."""
        import pandas as pd

        rows = set()
        for process in self.processes:
            of = process.condition
            reasons = UNDECLARED | {knob.name: (knob.reason, knob.source) for knob in declared_knobs(of.framework)}
            for name, value in process.knobs.items():
                rows.add((name, value, of.framework, of.environment, of.device, of.lane, *reasons.get(name, OLD)))
        columns = ["name", "value", "framework", "environment", "device", "lane", "reason", "source"]
        return pd.DataFrame(sorted(rows), columns=columns)

    @property
    def omissions(self) -> list[str]:
        """The names of variables that did not reach one of the processes, and could have mattered."""
        return sorted({name for process in self.processes for name in process.left_out})
