"""The knobs: settings outside the code that change speed. Every one is declared here, with its value, reason and
source; none is silent.

Lane ``default`` is the framework as installed; lane ``tuned`` sets ``TUNED``. What every worker needs so that its
numbers mean the same as others' is set in both lanes (``ALWAYS``). Variables that could act as knobs are removed from a
worker's environment first, so that a user's shell cannot change a lane. ``threads`` of a condition is a knob too, in
either lane.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchlib import workloads
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

_BY_SESSION = {knob.name for knob in (*ALWAYS, *TUNED) if knob.by_session}

THREADS_REASON = (
    "the condition asks for so many threads: OpenMP's limit, and the worker is bound to as many cores "
    "(MindSpore's own thread pool heeds the binding only)"
)

SCRUBBED_PREFIXES = (
    "ATEN_",
    "MALLOC_",
    "GLIBC_TUNABLES",
    "ONEDNN_",
    "DNNL_",
    "OMP_",
    "GOMP_",
    "KMP_",
    "MKL_",
    "OPENBLAS_",
    "TORCH",
    "PYTORCH_",
    "MS_",
    "CUDA_LAUNCH",
    "CUDA_CACHE_",
    "CUDA_DEVICE_ORDER",
    "CUDA_FORCE_",
    "CUDA_MODULE_LOADING",
    "CUBLAS_",
    "CUDNN_",
    "NVIDIA_TF32",
    "TRITON_",
    "LD_PRELOAD",
    "PYTHONDEVMODE",
    "PYTHONMALLOC",
    "PYTHONOPTIMIZE",
    "PYTHONPROFILEIMPORTTIME",
    "PYTHONTRACEMALLOC",
)
"""Variables with these beginnings are taken out of a worker's environment: they could change speed without being
declared.
"""


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
    return knobs


def environment(condition: Condition, scratch: Path, inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """A worker's environment: what is inherited, less what could act as a knob, plus the condition's knobs."""
    clean = {name: value for name, value in inherited.items() if not name.startswith(SCRUBBED_PREFIXES)}
    variables = {name: value for name, value in of(condition).items() if name not in _BY_SESSION}
    return {**clean, **{name: value.replace(SCRATCH, str(scratch)) for name, value in variables.items()}}


def for_session(condition: Condition) -> dict[str, str]:
    """Of the condition's knobs those that the framework's session sets."""
    return {name: value for name, value in of(condition).items() if name in _BY_SESSION}


def ledger(conditions: Iterable[Condition]) -> pd.DataFrame:
    """Every knob that is set for any of the conditions, a row per knob, framework, device and lane."""
    import pandas as pd

    declared = {knob.name: knob for knob in (*ALWAYS, *TUNED)}
    rows = {}
    for condition in conditions:
        for name, value in of(condition).items():
            knob = (
                asdict(declared[name])
                if name in declared
                else {"reason": THREADS_REASON, "source": "OpenMP specification"}
            )
            row = (name, value, condition.framework, condition.device, condition.lane, knob["reason"], knob["source"])
            rows[row] = None
    columns = ["name", "value", "framework", "device", "lane", "reason", "source"]
    return pd.DataFrame(sorted(rows), columns=columns)


@dataclass(frozen=True)
class Ledger:
    """The ledger of some conditions' knobs, as an object that shows itself."""

    conditions: list[Condition]

    @property
    def frame(self) -> pd.DataFrame:
        """As of :func:`ledger`."""
        return ledger(self.conditions)

    def plot(self) -> Figure:
        """Which knob is set where, as a figure."""
        from benchlib import plots  # matplotlib takes long to import: not for nothing

        return plots.ledger(self)

    def _repr_html_(self) -> str:
        from benchlib import tables

        return tables.html(self.frame, "The knobs that are set; all others are as installed.").data
