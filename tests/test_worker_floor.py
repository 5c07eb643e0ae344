"""What a worker imports runs in any framework's environment: Python 3.7 and later, numpy since 1.16, nothing else.

In Python 3.6 it runs as the worker's loader makes it, without annotations, and with a few packages more.
"""

import contextlib
import functools
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchlib.condition import Condition
from benchlib.runner import process_group
from benchlib.runner.jobs import Job, prepare_job
from benchlib.worker import PLUGINS, files
from benchlib.worker.channel import Channel

ROOT = Path(__file__).resolve().parents[1]
DOUBLES = ROOT / "tests" / "doubles"
MINORS = range(6, 14)
"""Of Python 3."""

PACKAGES = {
    6: ["numpy==1.16.*", "dataclasses==0.8", "importlib-metadata==4.8.3", "typing-extensions==4.1.1", "zipp==3.6.0"],
    7: ["numpy==1.16.*", "importlib-metadata"],
}
"""That are installed for a minor version of Python, where not the newest numpy that there is for it."""

BLOCKED = """
import runpy, sys
class Refusal:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "numpy", "benchlib"}:
            raise ImportError(f"a worker has no {name}")
sys.meta_path.insert(0, Refusal())
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""

METADATA = """
class PackageNotFoundError(Exception):
    pass

def distribution(name):
    raise PackageNotFoundError(name)
"""
"""In place of the package importlib-metadata, which Python 3.7 needs."""

IMPORTED = """
import importlib, json, pathlib, sys
from unittest.mock import MagicMock
for kind in ("frameworks", "workloads/*"):  # JAX has no version for an old Python
    for path in pathlib.Path("benchlib").glob(kind + "/[!j]*.py"):
        compile(path.read_text(encoding="utf-8"), str(path), "exec")
sys.modules["numpy"] = MagicMock()  # what is looked for here is the floor's own Python
for name in sys.argv[1:]:
    importlib.import_module(name)
from benchlib import workloads
said = []
for name in workloads.names():
    workload = workloads.load(name)
    values = workload.values({})
    said.append([name, str(workload.weights(values)), workload.held(values), str(workload.step_work(values))])
print(json.dumps(said))
"""


def _floor() -> list[str]:
    """The modules that workers import, but those of a framework."""
    package = ROOT / "benchlib"
    patterns = ("worker/[!_]*.py", "workloads/[!_]*.py", "workloads/*/workload.py")
    files = [path for pattern in patterns for path in package.glob(pattern)]
    return ["benchlib.worker.__main__", *(".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files)]


@functools.cache
def _interpreters() -> dict[int, str]:
    """A Python 3 of each minor version that this machine has, on PATH or in pyenv's folder."""
    homes = {Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv"), Path.home() / ".pyenv"}
    starting: dict[int, str] = {}
    for minor in MINORS:
        places = [path for home in homes for path in sorted((home / "versions").glob(f"3.{minor}.*/bin/python"))]
        for python in filter(None, [shutil.which(f"python3.{minor}"), *map(str, places)]):
            question = [python, "-c", f"import sys; sys.exit(sys.version_info[:2] != (3, {minor}))"]
            if subprocess.run(question, capture_output=True, check=False).returncode == 0:
                starting[minor] = python  # pyenv's own python3.x on PATH may refuse to start
                break
    return starting


def test_every_python_of_this_machine_reads_and_imports_the_floor():
    floor, interpreters = _floor(), _interpreters()
    beside = {path.stem for path in Path(process_group.WORKER).parent.glob("*.py")}
    assert not beside & sys.stdlib_module_names, "a script's own folder comes first while it begins"
    assert sys.version_info.minor in interpreters
    said = {}
    for minor, python in interpreters.items():
        if minor == 6:
            continue  # it has no dataclasses of its own, and no annotations of later: see the workers that serve
        command = [python, "-B", "-c", IMPORTED, *floor]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, f"Python 3.{minor}: {ended.stderr}"
        said[minor] = json.loads(ended.stdout)
    assert all(answer == said[sys.version_info.minor] for answer in said.values())


@pytest.fixture
def job(toy_framework: None, tmp_path: Path) -> Job:
    return prepare_job(Condition(workload="toy", framework="toy"), 0, tmp_path / "inputs")


@contextlib.contextmanager
def _worker(command: list[str], place: Path) -> Iterator[Channel]:
    """A worker's channel; ``command`` starts it, before its own arguments."""
    ours, theirs = socket.socketpair()
    command = [*command, process_group.WORKER, str(theirs.fileno()), str(os.getpid())]
    with ours, theirs, subprocess.Popen(command, pass_fds=[theirs.fileno()], cwd=place, env=_environment()) as process:
        theirs.close()
        try:
            yield Channel(ours)
        finally:
            ours.close()
            process.wait(60)
    assert process.returncode == 0


@contextlib.contextmanager
def _rank(command: list[str], place: Path) -> Iterator[Channel]:
    """The channel of a group's process, the first."""
    path = place / "group"
    with socket.socket(socket.AF_UNIX) as waiting:
        waiting.bind(str(path))
        waiting.listen()
        waiting.settimeout(60)
        command = [*command, process_group.WORKER, str(path), "toy"]
        with subprocess.Popen(command, cwd=place, env={**_environment(), "RANK": "0"}) as process:
            channel = Channel(waiting.accept()[0])
            assert channel.receive(60) == {"rank": 0, "pid": process.pid}
            yield channel
            channel.close()
            process.wait(60)
    assert process.returncode == 0


def _environment() -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), str(DOUBLES)])
    return {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", PLUGINS: str(DOUBLES)}


def _answers(channel: Channel, job: Job, place: Path) -> dict[str, Any]:
    """What a worker says of the job to each request there is, less what is about time and memory."""

    def ask(do: str, **details: Any) -> dict[str, Any]:
        channel.send({"do": do, **details})
        while "block" in (answer := channel.receive(60)):
            pass
        assert "error" not in answer, answer["traceback"]
        return answer

    place.mkdir(exist_ok=True)
    chosen = {"framework": "toy", "device": "cpu", "mode": "eager", "precision": "fp32", "seed": 0, "cpus": 1}
    opened = ask("open", **chosen, world_size=1, communication=True, knobs={})
    built = ask("build", **job.document())
    assert ask("first_step")["wall_s"] > 0
    assert ask("warm_up", limit_s=0.1)["steps"] > 0
    assert ask("block", steps=3)["steps"] == 3
    assert len(ask("planted", seconds=0.0, takes=1)["timed_s"]) == 1
    ask("reset")
    epoch = ask("epoch", number=1, orders=str(job.orders), block_steps=16)
    ask("predict", file=str(place / "predictions.npy"))
    trials = ask("check", steps=3, trial="1", again=False, masked=False, file=str(place / "check.npz"))
    assert ask("memory")["peak"] > 0
    channel.send({"do": "end"})
    arrays = {"loss": np.array(epoch["loss"]), "predictions": np.load(place / "predictions.npy")}
    return {
        "numpy": opened["versions"]["numpy"],
        "built": built,
        "trials": trials,
        "order": epoch["order_sha256"],
        "arrays": {**arrays, **files.unpack(place / "check.npz")},
    }


def _assert_alike(one: dict[str, Any], other: dict[str, Any]) -> None:
    for name in ("built", "trials", "order"):
        assert one[name] == other[name]
    assert one["arrays"].keys() == other["arrays"].keys()
    for name, array in one["arrays"].items():
        np.testing.assert_allclose(array, other["arrays"][name], rtol=1e-4, atol=1e-5, err_msg=name)


def _served(command: list[str], job: Job, place: Path) -> dict[str, Any]:
    place.mkdir()
    with _worker(command, place) as channel:
        return _answers(channel, job, place)


def test_it_serves_where_only_numpy_and_the_standard_library_are(job: Job, tmp_path: Path):
    alone = _served([sys.executable, "-c", BLOCKED], job, tmp_path / "alone")
    _assert_alike(alone, _served([sys.executable], job, tmp_path / "usual"))


@pytest.fixture(scope="module")
def pythons_with_numpy(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """From the minor version of a Python to an interpreter of it that has numpy, installed for it alone."""

    @functools.cache
    def with_numpy(minor: int) -> str:
        if minor not in _interpreters():
            pytest.skip(f"THIS MACHINE HAS NO PYTHON 3.{minor}: the floor is not tested on it")
        folder = tmp_path_factory.mktemp("environment") / f"3.{minor}"
        subprocess.run([_interpreters()[minor], "-m", "venv", folder], check=True)
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]
        subprocess.run([folder / "bin" / "python", *install, *PACKAGES.get(minor, ["numpy"])], check=True)
        return str(folder / "bin" / "python")

    return with_numpy


@pytest.mark.slow
@pytest.mark.parametrize("minor", [6, 7, *(pytest.param(one, marks=pytest.mark.release) for one in MINORS[2:])])
def test_it_serves_under_every_python(minor: int, pythons_with_numpy: Any, job: Job, tmp_path: Path):
    python = pythons_with_numpy(minor)
    here = _served([sys.executable], job, tmp_path / "here")
    there = _served([python], job, tmp_path / "there")
    _assert_alike(there, here)
    (tmp_path / "group").mkdir()
    with _rank([python], tmp_path / "group") as channel:
        _assert_alike(_answers(channel, job, tmp_path / "group"), here)
    if minor in PACKAGES:
        assert there["numpy"].startswith("1.16.")
    asked = [python, "-c", (ROOT / "benchlib" / "probe.py").read_text(encoding="utf-8"), "numpy", "torch"]
    answer = json.loads(subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=True).stdout)
    assert answer["python"].startswith(f"3.{minor}.")
    packages = answer["modules"]["numpy"]["packages"]
    assert packages == {"numpy": there["numpy"], "files of numpy": packages["files of numpy"]}
    assert not answer["modules"]["torch"]["place"]
