"""The knobs: settings outside the code that change speed. Every one is declared here, with its value, reason and
source; none is silent.

Lane ``default`` is the framework as installed; lane ``tuned`` sets ``TUNED``. What every worker needs so that its
numbers mean the same as others' is set in both lanes (``ALWAYS``), what the equivalence gate needs in its workers only
(``GATE``). ``threads`` of a condition is a knob too, in either lane. What else a worker's environment holds is in
``benchlib.variables``: a user's shell cannot change a lane.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from benchlib import variables, workloads
from benchlib.condition import Condition
from benchlib.errors import BenchlibError, unknown

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Knob:
    """A setting of a worker: where it applies, its value, why, and who says so. It is an environment variable, or is
    set by the framework's session (``by_session``), which knows it by this name.
    """

    name: str
    value: str
    frameworks: tuple[str, ...]  # empty: all
    devices: tuple[str, ...]
    reason: str
    source: str
    convolutions_only: bool = False
    by_session: bool = False

    def applies(self, condition: Condition) -> bool:
        return (
            (not self.frameworks or condition.framework in self.frameworks)
            and condition.device in self.devices
            and (not self.convolutions_only or workloads.load(condition.workload).convolutions)
        )


_MALLOC = "glibc manual, 'Memory Allocation Tunables'"

TUNED = (
    Knob(
        "MALLOC_MMAP_THRESHOLD_",
        "4294967296",
        (),
        ("cpu",),
        "large buffers stay in the heap instead of being mapped anew at every step; processes then differ far less",
        _MALLOC,
    ),
    Knob(
        "MALLOC_TRIM_THRESHOLD_",
        "68719476736",
        (),
        ("cpu",),
        "freed memory is kept for the next step instead of going back to the system",
        _MALLOC,
    ),
    Knob(
        "GLIBC_TUNABLES",
        "glibc.malloc.hugetlb=1",
        (),
        ("cpu",),
        "the heap asks for transparent huge pages: fewer page faults, and less luck in where buffers lie",
        _MALLOC,
    ),
    Knob(
        "ONEDNN_MAX_CPU_ISA",
        "AVX2",
        ("mindspore",),
        ("cpu",),
        "on AVX-512 machines MindSpore 2.9 and 2.10 get oneDNN's reference convolution; this selects gemm:jit. "
        "Set where there are convolutions only: it slows matrix products down",
        "ONEDNN_VERBOSE=1 output; oneDNN manual, 'CPU dispatcher control'",
        convolutions_only=True,
    ),
    Knob(
        "cudnn_benchmark",
        "on",
        ("pytorch",),
        ("cuda",),
        "cuDNN times its algorithms for each new shape and takes the fastest; as installed it guesses",
        "PyTorch documentation, 'torch.backends.cudnn.benchmark'",
        convolutions_only=True,
        by_session=True,
    ),
    Knob(
        "channels_last",
        "on",
        ("pytorch",),
        ("cpu", "cuda"),
        "images and kernels lie in memory with the channels innermost, as the fastest convolutions of oneDNN and cuDNN "
        "want them; batches are laid out so off the clock",
        "PyTorch tutorials, 'Channels Last Memory Format'",
        convolutions_only=True,
        by_session=True,
    ),
    Knob(
        "float32_matmul_precision",
        "high",
        ("pytorch",),
        ("cuda",),
        "matrix products of fp32 round their factors to TF32 (10 bits after the point), as cuDNN's convolutions do as "
        "installed; the gate runs without TF32",
        "PyTorch documentation, 'torch.set_float32_matmul_precision'",
        by_session=True,
    ),
)

SCRATCH = "{scratch}"
"""In a knob's value: the worker's own scratch directory, empty at its start."""

ALWAYS = (
    Knob(
        "HOME",
        SCRATCH,
        (),
        ("cpu", "cuda", "npu", "xpu"),
        "settings and caches in the user's home (Keras's keras.json, Triton's kernels) do not reach a worker",
        "Keras documentation, 'Configuring your backend'; Python documentation, 'os.path.expanduser'",
    ),
    Knob(
        "TORCHINDUCTOR_CACHE_DIR",
        f"{SCRATCH}/inductor",
        ("pytorch",),
        ("cpu", "cuda", "npu", "xpu"),
        "every process compiles anew, so that first steps can be compared: a cache would favour whoever comes later",
        "PyTorch documentation, 'Compile Time Caching in torch.compile'",
    ),
    Knob(
        "TORCH_DEVICE_BACKEND_AUTOLOAD",
        "0",
        ("pytorch",),
        ("cpu", "cuda", "npu", "xpu"),
        "an installed torch_npu is imported on an NPU only: elsewhere it would fail, or patch torch",
        "PyTorch documentation, 'Autoloading Out-of-Tree Extension'",
    ),
    Knob(
        "PYTHONUNBUFFERED",
        "1",
        (),
        ("cpu", "cuda", "npu", "xpu"),
        "what a worker has printed can be told when it dies: Python would still hold it in a buffer",
        "Python documentation, 'Command line and environment'",
    ),
    Knob(
        "CUDA_DEVICE_ORDER",
        "PCI_BUS_ID",
        (),
        ("cuda",),
        "CUDA numbers the GPUs as the driver does, so that the GPU watched is the GPU used",
        "CUDA C++ Programming Guide, 'CUDA Environment Variables'",
    ),
)

GATE = (
    Knob(
        "NVIDIA_TF32_OVERRIDE",
        "0",
        (),
        ("cuda",),
        "in the gate only: NVIDIA's libraries compute fp32 as fp32, so that rounding to TF32 (10 bits after the point) "
        "does not hide another model",
        "NVIDIA, 'Accelerating AI Training with NVIDIA TF32 Tensor Cores'",
    ),
    Knob(
        "OMP_WAIT_POLICY",
        "passive",
        (),
        ("cpu", "cuda", "npu", "xpu"),
        "in the gate only, where two processes are at work: threads that wait for others of their process do not spin, "
        "which keeps the other process from its core. It changes no number",
        "OpenMP specification; PyTorch's reference of resnet50 took four times as long without",
    ),
)

_BY_SESSION = {knob.name for knob in (*ALWAYS, *TUNED) if knob.by_session}

THREADS_REASON = (
    "the condition asks for so many threads: OpenMP's limit, and the worker is bound to as many cores "
    "(MindSpore's own thread pool heeds the binding only)"
)

WORKER_PATH_REASON = "the user has workers import from these folders, too"

OLD_REASON = "set by the benchlib that measured it; this one does not declare it"


def of(condition: Condition) -> dict[str, str]:
    """The knobs set for a condition: values by name; ``SCRATCH`` in them is not filled in."""
    declared = [*ALWAYS, *(TUNED if condition.lane == "tuned" else ())]
    knobs = {knob.name: knob.value for knob in declared if knob.applies(condition)}
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
    return {knob.name: knob.value for knob in GATE if knob.applies(condition)}


def environment(condition: Condition, scratch: Path, inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """A worker's environment: what it may inherit, and the condition's knobs."""
    knobs = {name: value.replace(SCRATCH, str(scratch)) for name, value in of(condition).items()}
    in_environment = {name: value for name, value in knobs.items() if name not in _BY_SESSION}
    return {**variables.passed(inherited), **in_environment}


def for_session(condition: Condition) -> dict[str, str]:
    """Of the condition's knobs those that the framework's session sets."""
    return {name: value for name, value in of(condition).items() if name in _BY_SESSION}


class Process(Protocol):
    """What has a record of what was set in a worker: a measurement, a certificate."""

    condition: Condition
    knobs: dict[str, str]
    left_out: list[str]


def ledger(processes: Iterable[Process]) -> pd.DataFrame:
    """Every knob that was set in any of the processes, a row per knob, framework, environment, device and lane."""
    import pandas as pd

    reasons = {knob.name: (knob.reason, knob.source) for knob in (*ALWAYS, *TUNED, *GATE)}
    reasons["OMP_NUM_THREADS"] = (THREADS_REASON, "OpenMP specification")
    reasons[variables.WORKER_PATH] = (WORKER_PATH_REASON, "the environment of who measured")
    rows = {}
    for process in processes:
        of = process.condition
        for name, value in process.knobs.items():
            place = (of.framework, of.environment, of.device, of.lane)
            rows[(name, value, *place, *reasons.get(name, (OLD_REASON, "its record")))] = None
    columns = ["name", "value", "framework", "environment", "device", "lane", "reason", "source"]
    return pd.DataFrame(sorted(rows), columns=columns)


def left_out(processes: Iterable[Process]) -> list[str]:
    """The names of variables that did not reach one of the processes, and could have mattered."""
    return sorted({name for process in processes for name in process.left_out})


@dataclass(frozen=True)
class Ledger:
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

    def plot(self) -> Figure:
        """Which knob is set where, as a figure."""
        from benchlib.suite import plots  # matplotlib takes long to import: not for nothing

        return plots.ledger(self)

    def _repr_html_(self) -> str:
        from benchlib.suite import tables

        caption = "The knobs that were set; all others are as installed."
        if self.left_out:
            caption += f" Set in the shell, and left out of the workers' environments: {', '.join(self.left_out)}."
        return tables.html(self.frame, caption).data
