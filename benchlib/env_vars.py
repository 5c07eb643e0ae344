"""The environment variables that a worker gets of the process that starts it: those on a list, and no others. One that
was left out and could have changed a number is named in the record, without its value, which may be a secret. A
worker's home is its scratch directory, or settings in the user's (``~/.keras/keras.json``) would reach it.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from benchlib import frameworks, plugins

WORKER_PATH = "BENCHLIB_WORKER_PATH"  # that workers import from, as PYTHONPATH, which does not reach them; a knob
WORKER_FILES = f"files of {WORKER_PATH}"  # a hash of the Python files in these folders, in keys and records
XPUS = ("ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR")  # which Intel GPU, by which driver: on xpu a part of the key
NETWORK = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME", "HCCL_IF_IP")  # of groups: in their key

# Which libraries and compilers a framework finds: their values are part of a measurement's key.
LIBRARIES = (
    *("LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "CC", "CXX", "TOOLCHAIN_HOME"),
    *("CUDA_HOME", "CUDA_PATH", "CUDNN_HOME"),
    *("ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH", "ASCEND_AICPU_PATH"),
    *("ASCEND_TENSOR_COMPILER_INCLUDE", "ATB_HOME_PATH", "TBE_IMPL_PATH"),
)
# Which devices there are to see. Their kind is part of a measurement's key (machine.identity), not the number.
DEVICES = (
    *("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"),
    *("ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES"),
    *XPUS,
)
OTHERS = (
    *("PATH", "TMPDIR", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "CONDA_PREFIX"),
    "PYTHONNOUSERSITE",  # does the interpreter have the packages of PYTHONUSERBASE?
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *(case(f"{one}_proxy") for case in (str.upper, str) for one in ("http", "https", "ftp", "all", "no")),
    *NETWORK,
)
# How names begin of variables that could change a number, beside those that frameworks declare: left out, but named.
COULD_MATTER = (
    *("TF_", "TENSORFLOW", "XLA_", "JAX_", "KERAS", "MXNET", "DMLC_", "PADDLE", "FLAGS_", "CHAINER", "CUPY", "THEANO"),
    *("ONEDNN_", "DNNL_", "MKL", "OPENBLAS", "GOTO_", "BLIS_", "NVPL_", "NPY_", "NUMBA", "NUMEXPR", "XNNPACK"),
    *("CNTK", "CAFFE", "TVM_", "OMP_", "GOMP_", "KMP_", "TBB_", "NPROC", "CUDA_", "CUBLAS", "CUDNN"),
    *("LC_NUMERIC", "MALLOC_", "GLIBC_TUNABLES", "LD_", "TCMALLOC", "JEMALLOC", "MIMALLOC", "NVIDIA_"),
    *("NCCL_", "GLOO_", "ASCEND_", "ACL_", "HCCL_", "NPU_", "TASK_QUEUE_ENABLE", "ZE_", "SYCL_", "ONEAPI_", "IGC_"),
    *("PYTHON", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "COMPILER_PATH"),
)


class Placed(Protocol):
    """The choices of a condition that a worker's variables depend on."""

    device: str
    world_size: int


@dataclass(frozen=True)
class Surroundings:
    """The variables and knobs that a worker's process was started with, for its record."""

    knobs: dict[str, str] = field(default_factory=dict)  # all that were set; "{scratch}" is not filled in
    inherited: dict[str, str] = field(default_factory=dict)  # variables that count, and devices, as the parent had them
    left_out: list[str] = field(default_factory=list)  # names of variables it did not get that could have mattered


def for_worker(inherited: Mapping[str, str]) -> dict[str, str]:
    """The parent's variables that a worker gets, and the folder of ``pip --user``, for its home is another."""
    passing = {name: inherited[name] for name in (*LIBRARIES, *DEVICES, *OTHERS) if name in inherited}
    user_base = os.path.join(inherited.get("HOME") or os.path.expanduser("~"), ".local")
    passing["PYTHONUSERBASE"] = inherited.get("PYTHONUSERBASE") or user_base
    path = [*worker_folders(inherited), *_cann_folders(inherited)]
    return passing | ({"PYTHONPATH": os.pathsep.join(path)} if path else {})


def for_programs(inherited: Mapping[str, str]) -> dict[str, str]:
    """The parent's variables that kernels, installers and Chromium get. Of PYTHON* these are only the places of the
    user's packages, and of PYTHONPATH only benchlib's folder and CANN's.
    """
    kept = {"PYTHONUSERBASE", "PYTHONNOUSERSITE"}
    given = {name: value for name, value in inherited.items() if name in kept or not name.startswith("PYTHON")}
    own = [os.path.abspath(one) for one in _folders(inherited.get("PYTHONPATH")) if Path(one, "benchlib").is_dir()]
    path = [*own, *_cann_folders(inherited)]
    return given | ({"PYTHONPATH": os.pathsep.join(path)} if path else {})


def omissions(given: Mapping[str, str], inherited: Mapping[str, str]) -> list[str]:
    """The names of variables that were left out of an environment ``given``, and could matter."""
    could_matter = (*COULD_MATTER, *frameworks.every_variable())
    lost = {name for name in inherited if name not in given and name.startswith(could_matter)}
    others = set(_folders(inherited.get("PYTHONPATH"))) - set(_cann_folders(inherited))
    return sorted(lost | ({"PYTHONPATH"} if others else set()))


def worker_folders(inherited: Mapping[str, str]) -> list[str]:
    """The folders of ``WORKER_PATH``, absolute: a worker works elsewhere."""
    return [os.path.abspath(folder) for folder in _folders(inherited.get(WORKER_PATH))]


def worker_files(inherited: Mapping[str, str]) -> list[Path]:
    """The Python files in :func:`worker_folders`; a folder may be an archive, too."""
    folders = map(Path, worker_folders(inherited))
    files = [path for folder in folders for path in [folder, *plugins.visible_files(folder, "*")] if path.is_file()]
    return [path for path in files if path.suffix in (".py", ".pyc", ".so", ".pth", ".zip")]


def key_names(condition: Placed) -> list[str]:
    """The names in :func:`for_key`, set or not."""
    network = NETWORK if condition.world_size > 1 else ()
    return [*LIBRARIES, *network, *(XPUS if condition.device == "xpu" else ()), WORKER_FILES]


def for_key(condition: Placed, inherited: Mapping[str, str]) -> dict[str, str]:
    """The parent's variables that the numbers of a condition depend on, as far as they are set."""
    own = {WORKER_FILES: _digest(worker_files(inherited))} if worker_folders(inherited) else {}
    return {name: inherited[name] for name in key_names(condition) if inherited.get(name)} | own


def devices(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables of ``DEVICES`` that are set; an empty one hides all devices."""
    return {name: variables[name] for name in DEVICES if name in variables}


def identity(condition: Placed) -> dict[str, object]:
    """The parent's variables that numbers depend on: a part of their key, as JSON."""
    return {"passed": [*LIBRARIES, *DEVICES, *OTHERS], "counting": for_key(condition, os.environ)}


def _digest(files: Iterable[Path]) -> str:
    """A hash of some files, by name and content."""
    hashes = ((path, _hash(path, path.stat().st_size, path.stat().st_ctime_ns)) for path in files)
    return hashlib.sha256("".join(f"{path} {one}\n" for path, one in hashes).encode()).hexdigest()[:16]


@functools.cache
def _hash(path: Path, *state: int) -> str:
    """Read once in a ``state``: every condition asks for it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _folders(path: str | None) -> list[str]:
    return [folder for folder in (path or "").split(os.pathsep) if folder]


def _cann_folders(inherited: Mapping[str, str]) -> list[str]:
    """CANN's own folders on PYTHONPATH, of its set_env.sh: its compiler is in Python. Never run on Ascend."""
    home = inherited.get("ASCEND_TOOLKIT_HOME")
    return [one for one in _folders(inherited.get("PYTHONPATH")) if home and Path(one).is_relative_to(home)]
