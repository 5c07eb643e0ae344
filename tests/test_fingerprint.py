"""Which files are in the key of a number: all that a worker imports, what times it, and nothing that only shows it."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from benchlib import frameworks, workloads
from benchlib.condition import Condition
from benchlib.provenance import fingerprint
from benchlib.runner.jobs import prepare_job
from benchlib.runner.processes import WorkerProcess

DOUBLES = Path(__file__).parent / "doubles"
CNN = Condition(workload="cnn", batch_size=16, train_samples=32, hyperparameters={"image_size": 8})


@pytest.fixture
def doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' own framework and workload, in this process."""
    monkeypatch.setattr(frameworks, "__path__", [*frameworks.__path__, str(DOUBLES / "frameworks")])
    monkeypatch.setattr(workloads, "__path__", [*workloads.__path__, str(DOUBLES / "workloads")])


def _imported_by_a_worker(condition: Condition, inputs: Path) -> set[str]:
    """The modules of benchlib that a worker has imported after all that is measured, as its Python says."""
    path = os.pathsep.join([str(fingerprint.PACKAGE.parent), str(DOUBLES)])
    worker = WorkerProcess(condition, 0, 300.0, {"PYTHONVERBOSE": "1", "PYTHONPATH": path})
    job = prepare_job(condition, 0, inputs)
    try:
        worker.finish_open()
        worker.ask("build", **job.document())
        worker.ask("first_step")
        worker.ask("warm_up", limit_s=0.0)
        worker.ask("block", steps=1)
        worker.ask("reset")
        worker.ask("epoch", number=1, orders=str(job.orders), block_steps=16)
        worker.ask("predict", file=str(worker.scratch / "predictions.npy"))
        worker.ask("planted", seconds=0.0, takes=1)
        worker.ask("memory")
        printed = worker.log.read_text(encoding="utf-8", errors="replace")
    finally:
        worker.end()
    names = {"benchlib.worker.__main__", *re.findall(r"^import '(benchlib[\w.]*)' #", printed, re.MULTILINE)}
    assert {"benchlib", f"benchlib.workloads.{condition.workload}.{condition.framework}"} <= names, printed[-2000:]
    return names


@pytest.mark.parametrize("framework", ["toy", "twin", "pytorch", pytest.param("mindspore", marks=pytest.mark.slow)])
def test_all_that_a_worker_imports_is_hashed(framework: str, doubles: None, tmp_path: Path) -> None:
    is_double = framework in ("toy", "twin")
    condition = Condition(workload="toy", framework=framework) if is_double else CNN.but(framework=framework)
    imported = _imported_by_a_worker(condition, tmp_path)
    hashed = fingerprint.files(condition, "rounds")
    assert imported <= set(hashed), imported - set(hashed)
    assert hashed[f"benchlib.frameworks.{framework}"] == frameworks.file(framework)


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of benchlib, which is hashed in its place."""
    copied = shutil.copytree(fingerprint.PACKAGE, tmp_path / "benchlib", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(fingerprint, "PACKAGE", copied)
    for kind, package in fingerprint.MODELS.items():
        monkeypatch.setattr(package, "__path__", [str(copied / kind)])
    return copied


TIMED, CERTIFICATE, MINDSPORE = (CNN, "rounds"), (CNN, "gate"), (CNN.but(framework="mindspore"), "rounds")
OF_ANOTHER = (Condition(workload="resnet50_inference"), "rounds")  # whose model is resnet50's
EVERY = {"timed": TIMED, "certificate": CERTIFICATE, "mindspore": MINDSPORE, "of another": OF_ANOTHER}
IN_PYTORCH = {"timed", "certificate", "of another"}


@pytest.mark.parametrize(
    ("file", "changed"),
    [
        ("worker/service.py", {*EVERY}),
        ("metrics.py", {*EVERY}),
        ("runner/recording.py", {*EVERY}),
        ("equivalence/gate.py", {"certificate"}),
        ("frameworks/__init__.py", {*EVERY}),
        ("frameworks/pytorch.py", IN_PYTORCH),
        ("workloads/layers.py", {"of another"}),
        ("workloads/cnn/workload.py", {"timed", "certificate", "mindspore"}),
        ("workloads/cnn/pytorch.py", {"timed", "certificate"}),
        ("workloads/cnn/jax.py", set()),
        ("workloads/resnet50/pytorch.py", {"of another"}),
        ("plotting/figures.py", set()),
        ("stats/intervals.py", set()),
        ("condition.py", set()),
    ],
)
def test_a_file_is_in_the_keys_of_the_numbers_it_makes(copy: Path, file: str, changed: set[str]) -> None:
    before = {name: fingerprint.digest(*asked) for name, asked in EVERY.items()}
    (copy / file).write_text((copy / file).read_text() + "MORE = 1\n")
    assert {name for name, asked in EVERY.items() if fingerprint.digest(*asked) != before[name]} == changed


@pytest.mark.parametrize(
    ("line", "helper"),
    [
        ("from .deep.helper import WIDTH", "cnn/deep/helper.py"),
        ("import helped", "cnn/helped.cpython-311-x86_64-linux-gnu.so"),
        ("from ..other import helper", "other/helper.py"),
        ("from .. import other", "other/__init__.py"),
        ("from benchlib.workloads import other", "other/__init__.py"),
        ("import benchlib.workloads.other.helper as h", "other/helper.py"),
        ("from benchlib.workloads.cnn.jax import build", "cnn/jax.py"),  # another framework's
        ("def late():\n    from benchlib.workloads._shared import WIDTH", "_shared.py"),
    ],
)
def test_a_helper_is_in_the_key_of_what_imports_it(copy: Path, line: str, helper: str) -> None:
    model, helped = copy / "workloads" / "cnn" / "pytorch.py", copy / "workloads" / helper
    helped.parent.mkdir(exist_ok=True)
    for file in (helped.parent / "__init__.py", helped):
        file.write_text("WIDTH = 1\n")
    model.write_text(f"{model.read_text()}\n{line}\n")
    before = fingerprint.digest(*TIMED)
    helped.write_text("WIDTH = 23\n")
    assert fingerprint.digest(*TIMED) != before


def test_the_commit_of_a_checkout_is_known_whoever_owns_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*command: str) -> str:
        return subprocess.run(["git", "-C", tmp_path, *command], capture_output=True, text=True, check=True).stdout

    (tmp_path / "benchlib").mkdir()
    (tmp_path / "benchlib" / "__init__.py").write_text("")
    monkeypatch.setattr(fingerprint, "PACKAGE", tmp_path / "benchlib")
    git("init")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-m", "a")
    head = git("rev-parse", "--short=12", "HEAD").strip()
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # as in a container, or on a shared disk
    monkeypatch.setenv("GIT_DIR", "/nowhere")  # a hook's, which is of another repository
    assert fingerprint.commit.__wrapped__().endswith(f" {head}")
    (tmp_path / "benchlib" / "__init__.py").write_text("COUNT = 1")
    assert fingerprint.commit.__wrapped__().endswith(f" {head}+")
    monkeypatch.setattr(fingerprint, "PACKAGE", tmp_path / "benchlib" / "site-packages")
    assert head not in fingerprint.commit.__wrapped__(), "it is installed inside of another project's checkout"
    monkeypatch.setattr(fingerprint, "PACKAGE", tmp_path / "benchlib")
    monkeypatch.setenv("PATH", "")
    assert re.search("commit not known: git: .*No such file", fingerprint.commit.__wrapped__())


def test_every_name_of_an_import_statement_counts(tmp_path: Path) -> None:
    """One of Caffe2's files took its helper as the second name of a line: no number of it counted."""
    file = tmp_path / "model.py"
    file.write_text("from benchlib.workloads import Values, _caffe2  # pytorch\nfrom .. import (\n    a,\n    b,\n)\n")
    assert fingerprint.imports(file) == ("benchlib.workloads.Values", "benchlib.workloads._caffe2", "...a", "...b")
    of_features = fingerprint.model_files("caffe2", "resnet50_inference")
    assert "benchlib.workloads._caffe2" in of_features
