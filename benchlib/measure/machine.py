"""What it ran on: the machine, its devices, the frameworks installed, the code. Asked without importing any
framework.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from ctypes.util import find_library
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil

from benchlib import environments, frameworks, interpreters
from benchlib.condition import Condition, implementation
from benchlib.environments import DEFAULT
from benchlib.errors import BenchlibError
from benchlib.interpreters import Interpreter, Module
from benchlib.measure import imports
from benchlib.measure.npu_smi import chips, npus

PACKAGE = Path(__file__).resolve().parents[1]  # of benchlib itself

WORKER, RANK, GROUP = "benchlib.worker.__main__", "benchlib.worker.rank", "benchlib.measure.group"
GATE_ONLY = "benchlib.worker.check"

IN_KEY = frozenset(
    {
        "benchlib.condition",
        "benchlib.environments",
        "benchlib.interpreters",
        "benchlib.knobs",
        "benchlib.plugins",
        "benchlib.variables",
        "benchlib.measure.machine",
    }
)
"""Modules whose outcome is a part of a number's key itself: choices, versions, knobs, which files have a name, what a
worker inherits, the machine.
"""

HASHED = frozenset({"benchlib.data.prepare", "benchlib.data.weights", "benchlib.data.orders"})
"""Modules that make the workers' input files, whose hashes are in the key."""

KEEPING = frozenset(
    {
        "benchlib.analysis.failure",
        "benchlib.measure.answers",
        "benchlib.progress",
        "benchlib.store",
        "benchlib.scratch",
        "benchlib.shown",
        "benchlib.validation",
    }
)
"""Modules that keep, show or refuse what is measured by others, and that tidy up."""


@functools.cache
def gpus() -> tuple[dict[str, Any], ...]:
    """NVIDIA GPUs that workers may use (CUDA_VISIBLE_DEVICES), as the driver knows them: name, memory in MiB, driver.
    Empty where there is no driver or no GPU, or nothing to ask the driver with (the extra ``nvidia``).
    """
    handles = gpu_handles()
    if not handles:
        return ()
    import pynvml

    def told(ask: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return ask()
        except pynvml.NVMLError:  # such as a GPU that shares the machine's memory and has no number of its own
            return otherwise

    return tuple(
        {
            "name": told(lambda one=handle: pynvml.nvmlDeviceGetName(one), "a GPU without a name"),
            "memory_mib": told(lambda one=handle: pynvml.nvmlDeviceGetMemoryInfo(one).total / 2**20, None),
            "driver": told(pynvml.nvmlSystemGetDriverVersion, "unknown"),
        }
        for handle in handles
    )


@functools.cache
def gpu_handles() -> list[Any]:
    """NVML's handles of the GPUs that CUDA_VISIBLE_DEVICES lets workers see, in its order (indices as the driver's: a
    worker gets CUDA_DEVICE_ORDER=PCI_BUS_ID), up to the first that does not exist, as CUDA reads it.
    """
    pynvml = _nvml()
    if pynvml is None:
        return []
    try:
        pynvml.nvmlInit()
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        names = map(str, range(pynvml.nvmlDeviceGetCount())) if visible is None else visible.split(",")
    except pynvml.NVMLError:
        return []
    handles = []
    for name in map(str.strip, names):
        try:
            handles.append(_gpu_named(name))
        except pynvml.NVMLError:
            break
    return handles


def _nvml() -> ModuleType | None:
    """What NVIDIA's driver is asked with, if it is installed."""
    try:
        import pynvml
    except ModuleNotFoundError:
        return None
    return pynvml


def _gpu_named(name: str) -> Any:
    """NVML's handle by index, or by UUID or its beginning, as CUDA takes them."""
    import pynvml

    if name.isdigit():
        return pynvml.nvmlDeviceGetHandleByIndex(int(name))
    for index in range(pynvml.nvmlDeviceGetCount()):
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        if name and pynvml.nvmlDeviceGetUUID(handle).startswith(name):
            return handle
    return pynvml.nvmlDeviceGetHandleByUUID(name)  # a part of a GPU (MIG), or none


def offers(environment: str, framework: str) -> bool:
    """Has an environment what ``framework`` is imported from? A BenchlibError where it is not there, or cannot say."""
    return _has(environment, frameworks.package(framework))


@functools.cache
def versions(framework: str, environment: str = DEFAULT) -> dict[str, str]:
    """Versions in an environment: Python, the framework and what its file imports beside it (numpy ...), by the names
    of their distributions; and glibc's. What no distribution has installed has no version, but a hash.
    """
    named: dict[str, str] = {}
    for name in _needs(framework):
        one = _module(environment, name)
        named |= {distribution: one.packages[distribution] for distribution in one.distributions}
        named |= {name: f"file {one.digest}"} if one.digest else {}
    return {"python": _interpreter(environment).python, **named, "glibc": platform.libc_ver()[1]}


@functools.cache
def packages(framework: str, workload: str | None = None, environment: str = DEFAULT) -> dict[str, str]:
    """Versions of all distributions in an environment that a worker of ``framework`` may compute with, and of those
    that the files of ``workload`` need: what these files import, and what that needs in turn, whatever for. Which of
    them changes a number cannot be told from outside. Of what is imported also a hash of its files, by which builds of
    one version are told apart.
    """
    every = {name: _module(environment, name) for name in _needs(framework, workload)}
    own = {name: f"file {one.digest}" for name, one in every.items() if one.digest}
    return {name: version for one in every.values() for name, version in sorted(one.packages.items())} | own


def require_versions(framework: str, environment: str, imported: Mapping[str, str]) -> None:
    """Raise a BenchlibError if a worker has imported another version than :func:`versions` says: interpreters are asked
    once, and what was installed since then would be measured under the key of what was there before.
    """
    known = versions(framework, environment)
    for name, version in imported.items():
        if name in known and not known[name].startswith("file ") and not _is_same(version, known[name]):
            raise BenchlibError(
                f"framework {implementation(framework, environment)!r}: a worker has imported {name} {version}, but "
                f"{name} {known[name]} was there when this process first looked: it was installed anew meanwhile; "
                "restart the notebook's kernel (or this program)"
            )


def _is_same(one: str, other: str) -> bool:
    """Versions that differ in their spelling only, or in a build that just one of them names (``+cpu``)."""
    (public, build), (others, others_build) = (
        [re.findall(r"[a-z]+|[1-9]\d*|0(?!\d)", part) for part in text.lower().partition("+")[::2]]
        for text in (one, other)
    )
    return public == others and (build == others_build or not build or not others_build)


def compiler(condition: Condition) -> dict[str, str]:
    """The C++ compiler, if a worker makes the condition's kernels with one that is found here (torch.compile on the
    CPU does): ``c++`` and the first line of what it says of its version. A part of the key.
    """
    if not frameworks.compiles(condition.framework, condition.mode, condition.device):
        return {}
    path = shutil.which(os.environ.get("CXX") or "g++")
    return {"c++": _compiler_version(path, os.stat(path).st_mtime_ns)} if path else {}


@functools.cache
def _compiler_version(path: str, mtime_ns: int) -> str:
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return "cannot be started"
    return next(iter(said.splitlines()), "says no version")


def available(framework: str, device: str, environment: str = DEFAULT) -> str | None:
    """None if ``framework`` can use ``device`` here in an environment; else a sentence that says what is missing and
    what to do.
    """
    try:
        python = environments.find(environment).python
        if shutil.which(python) is None:
            return (
                f"environment {environment!r}: {python} is not there: benchlib environment remove {environment}, and "
                "make it again"
            )
        there = offers(environment, framework)
    except BenchlibError as error:
        return str(error)
    if not there:
        package = frameworks.package(framework)
        if environment == DEFAULT:
            own = frameworks.distributions(framework)[0]
            return (
                f"framework {framework!r} is not installed: pip install {own} into this environment, or name an "
                "environment that has it (benchlib environment list)"
            )
        return (
            f"framework {framework!r}: environment {environment!r} has no {package}: install it with {python} -m pip "
            f"(or uv pip install --python {python}), or name an environment that has it (benchlib environment list)"
        )
    if device not in frameworks.devices(framework):
        return (
            f"device {device!r}: {framework} has no path to it; it runs on {', '.join(frameworks.devices(framework))}"
        )
    if device == "cuda":
        if _nvml() is None and any(Path("/dev").glob("nvidia[0-9]*")):
            return (
                "device 'cuda': there is an NVIDIA GPU, but nothing to ask its driver with: "
                "pip install 'benchlib[nvidia]'; else use device 'cpu'"
            )
        if not gpus():
            visible = os.environ.get("CUDA_VISIBLE_DEVICES")
            shown = "" if visible is None else f", and CUDA_VISIBLE_DEVICES is {visible!r}"
            return f"device 'cuda': the NVIDIA driver shows no GPU (nvidia-smi tells why){shown}; use device 'cpu'"
        if framework == "pytorch" and not _torch_built_for("cuda", environment):
            return "device 'cuda': the installed torch is a CPU build; install one for CUDA (see pytorch.org)"
        if framework == "mindspore" and (lacking := _mindspore_gpu_lacks(environment)):
            return (
                f"device 'cuda': mindspore's plugin for GPUs lacks {lacking}: put CUDA 11 and cuDNN 8 on "
                "LD_LIBRARY_PATH; else use 'cpu'"
            )
    if device == "xpu" and framework == "pytorch" and not _torch_built_for("xpu", environment):
        return (
            "device 'xpu': the installed torch is no build for Intel GPUs; install one (see pytorch.org), or use 'cpu'"
        )
    if device == "npu" and framework == "pytorch" and not _has(environment, "torch_npu"):
        return "device 'npu': torch_npu is not installed; environments/ascend.txt says how; else use 'cpu'"
    if device == "npu":
        needs = "torch_npu" if framework == "pytorch" else framework
        if framework == "pytorch" and not _has_cann():
            return _without_cann(needs)
        if not list(Path("/dev").glob("davinci[0-9]*")):
            return (
                "device 'npu': no Ascend device (/dev/davinci*); with one, see environments/ascend.txt; else use 'cpu'"
            )
        if not _has_cann():
            return _without_cann(needs)
    return None


def devices(within: Iterable[str] = (DEFAULT,)) -> list[str]:
    """The devices that at least one framework can use here in one of these environments, ``cpu`` first."""
    every = {row["device"] for row in survey(within) if row["missing"] is None}
    return sorted(every, key=frameworks.every_device().index)


def troubles() -> list[str]:
    """What a driver's tool said that could not be read: a sentence each. Its devices are not watched."""
    return [trouble for trouble in (chips().trouble,) if trouble]


def survey(within: Iterable[str] = (DEFAULT,)) -> list[dict[str, str | None]]:
    """Of every framework in each of these environments, and every device that it has a path to: ``framework``,
    ``environment``, the framework's ``version`` there, ``device``, and what is ``missing`` (None: nothing). What is not
    installed is told of the default environment only: nobody expects every framework in every other. No framework is
    imported.
    """
    return [
        {
            "framework": name,
            "environment": environment,
            "version": _version(name, environment),
            "device": device,
            "missing": available(name, device, environment),
        }
        for environment in within
        for name in frameworks.names()
        if environment == DEFAULT or _offers(environment, name)
        for device in frameworks.devices(name)
    ]


def require(conditions: Iterable[Condition]) -> None:
    """Raise a BenchlibError if a condition asks for an environment, a framework, a device or a number of threads that
    this machine does not have.
    """
    for condition in conditions:
        missing = available(condition.framework, condition.device, condition.environment)
        if missing:
            raise BenchlibError(f"{condition}: {missing}")
        cores = len(os.sched_getaffinity(0))
        if condition.threads is not None and condition.threads > cores:
            raise BenchlibError(f"{condition}: threads {condition.threads}, but this machine has {cores} cores")
        if condition.world_size > 1:
            _require_group(condition, cores)


def _require_group(condition: Condition, cores: int) -> None:
    if not frameworks.launcher(condition.framework):
        raise BenchlibError(f"{condition}: world_size: {condition.framework} has no path to data-parallel training")
    if condition.device == "cpu" and condition.world_size * condition.threads > cores:
        raise BenchlibError(
            f"{condition}: world_size {condition.world_size} of {condition.threads} threads, but this machine has "
            f"{cores} cores"
        )
    there = {"cuda": len(gpus()), "npu": len(npus())}.get(condition.device)
    if there is not None and condition.world_size > there:
        raise BenchlibError(f"{condition}: world_size {condition.world_size}, but {there} devices {condition.device!r}")


@functools.cache
def describe() -> dict[str, Any]:
    """The machine in words and numbers, for a report: cpu, cores, memory in GiB, GPUs, system, benchlib's version and
    commit.
    """
    return {
        "cpu": _cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "gpus": [f"{gpu['name']}, {_mib(gpu['memory_mib'])}, driver {gpu['driver']}" for gpu in gpus()],
        "npus": [f"Ascend {one.name.removeprefix('Ascend')}, {_mib(one.memory_total_mib)}" for one in npus()],
        "cann": _cann(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "virtual": "hypervisor" in _cpuinfo(),
        "governor": _first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "huge_pages": _first_line("/sys/kernel/mm/transparent_hugepage/enabled"),
    }


def identity(device: str) -> dict[str, Any]:
    """What of the machine a measurement on ``device`` depends on: a part of its key."""
    told = describe()
    names = (
        "cpu",
        "cores",
        "memory_gib",
        "governor",
        "huge_pages",
        *{"cuda": ("gpus",), "npu": ("npus", "cann")}.get(device, ()),
    )
    return {name: told[name] for name in names}


def code_files(condition: Condition, procedure: str) -> dict[str, Path]:
    """The files whose code makes a condition's numbers, by the names of their modules.

    ``procedure`` is the module of ``benchlib.measure`` that says what is done: ``rounds``, ``epochs``, ``ceiling``,
    ``contract`` or ``gate``. Of the worker's side that is all that it imports, with the framework's file and the
    workload's; only what it computes for the gate is the gate's alone. Of the parent's it is the procedure with what it
    imports, less what the key tells by itself (:data:`IN_KEY`, :data:`HASHED`) and what keeps and shows numbers
    (:data:`KEEPING`). So what is new is in, unless it is named here.
    """
    together = condition.world_size > 1
    worker = [*_modules(condition.framework, condition.workload), RANK if together else WORKER]
    beside = IN_KEY | HASHED | KEEPING | (frozenset() if together else {GROUP})
    return {
        **imports.closure(worker, () if procedure == "gate" else {GATE_ONLY}),
        **imports.closure([f"benchlib.measure.{procedure}"], beside),
    }


def code(condition: Condition, procedure: str) -> str:
    """A hash of the code in :func:`code_files`: a number made by other code has another key. Comments, docstrings and
    layout are not code.
    """
    return imports.digest(code_files(condition, procedure))


@functools.cache
def commit() -> str:
    """benchlib's version, and git's commit where this is a checkout (with ``+`` if files differ from it)."""
    version = f"benchlib {importlib.metadata.version('benchlib')}"
    git = ["git", "-C", str(PACKAGE.parent)]
    try:
        head = subprocess.run(
            [*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
        changed = subprocess.run(
            [*git, "status", "--porcelain", "--", "benchlib"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return version
    return f"{version} {head}{'+' if changed.strip() else ''}"


def _offers(environment: str, framework: str) -> bool:
    try:
        return offers(environment, framework)
    except BenchlibError:  # it is gone, or cannot say
        return False


def _has(environment: str, package: str) -> bool:
    return bool(_module(environment, package).place)


def _version(framework: str, environment: str) -> str | None:
    """Of the distribution that a framework comes in, less what says how it was built; None: it is not there."""
    try:
        one = _module(environment, frameworks.package(framework))
    except BenchlibError:  # ``available`` says so
        return None
    return one.packages[one.distributions[0]].partition("+")[0] if one.distributions else None


def _modules(framework: str, workload: str | None = None) -> list[str]:
    """What a worker imports by names that it is told: the framework's module and the workload's."""
    own = f"benchlib.workloads.{workload}"
    return [f"benchlib.frameworks.{framework}", *([f"{own}.workload", f"{own}.{framework}"] if workload else [])]


def _needs(framework: str, workload: str | None = None) -> list[str]:
    """The top-level modules of others that these import, the framework's own first."""
    own = frameworks.package(framework).partition(".")[0]
    return list(dict.fromkeys([own, *imports.packages(imports.closure(_modules(framework, workload)))]))


def _module(environment: str, name: str) -> Module:
    """A top-level module in an environment."""
    name = name.partition(".")[0]
    known = _interpreter(environment).modules
    return known[name] if name in known else _interpreter(environment, name).modules[name]


def _interpreter(environment: str, *more: str) -> Interpreter:
    """What an environment's interpreter has of what any framework's file imports, asked once for all; or ``more``."""
    every = {name for framework in frameworks.names() for name in _needs(framework)}
    return interpreters.probe(environments.find(environment).python, tuple(sorted(more or every)))


def _without_cann(needs: str) -> str:
    return (
        f"device 'npu': {needs} needs CANN, and its libhccl.so is not on LD_LIBRARY_PATH: source CANN's set_env.sh, "
        "see environments/ascend.txt; else use 'cpu'"
    )


@functools.cache
def _mindspore_gpu_lacks(environment: str) -> str:
    """The libraries that MindSpore's plugin for GPUs, a part of its wheel for Linux, does not find here; or the plugin.
    Empty where nothing is missing. Never run with a GPU.
    """
    folder = Path(_module(environment, "mindspore").place).parent / "lib" / "plugin"
    plugins = sorted(folder.glob("libmindspore_gpu.so*"))
    if not plugins:
        return "itself: this build of mindspore comes without it"
    told = [
        subprocess.run(["ldd", str(plugin)], capture_output=True, text=True, check=False).stdout for plugin in plugins
    ]
    lacking = [sorted(re.findall(r"(\S+) => not found", text)) for text in told]
    return "" if [] in lacking else ", ".join(min(lacking, key=len))


def _has_cann() -> bool:
    """Can the dynamic linker find Ascend's libraries?"""
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return any(Path(folder, "libhccl.so").exists() for folder in folders if folder) or find_library("hccl") is not None


def _torch_built_for(device: str, environment: str) -> bool:
    """Was an environment's torch built for ``cuda`` or ``xpu``? Read from its version file, since importing torch in
    the parent is not allowed.
    """
    origin = Path(_module(environment, "torch").place).parent / "version.py"
    try:
        text = origin.read_text(encoding="utf-8")
    except OSError:  # half installed
        return False
    return re.search(rf"^{device}(: [^=]*)? = '[\d.]+'", text, re.MULTILINE) is not None


def _cann() -> str:
    """The version of CANN that set_env.sh has set up; empty where there is none. Never run on Ascend."""
    told = _first_lines(os.environ.get("ASCEND_TOOLKIT_HOME", ""), "version.cfg")
    found = re.search(r"\[([\d.\w]+)(?::|\])", told)
    return found.group(1) if found else ""


def _first_lines(folder: str, name: str) -> str:
    try:
        return Path(folder, name).read_text(encoding="utf-8")[:4000] if folder else ""
    except (OSError, UnicodeDecodeError):
        return ""


def _mib(size: float | None) -> str:
    return "memory not told" if size is None else f"{size:.0f} MiB"


def _cpuinfo() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""


def _cpu_name() -> str:
    match = re.search(r"^model name\s*:\s*(.+)$", _cpuinfo(), re.MULTILINE)
    return match.group(1) if match else platform.processor()


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()[0]
    except (OSError, IndexError):
        return "unknown"
