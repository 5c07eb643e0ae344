"""Which code makes a number is read from the imports, and is what a worker imports in fact."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from benchlib import frameworks, workloads
from benchlib.condition import Condition
from benchlib.errors import BenchlibError
from benchlib.measure import imports, own_code
from benchlib.measure.jobs import prepare_job
from benchlib.measure.processes import WorkerProcess

DOUBLES = Path(__file__).parent / "doubles"
PROCEDURES = ("rounds", "epochs", "gate", "ceiling")
CNN = Condition(workload="cnn", batch_size=16, train_samples=32, hyperparameters={"image_size": 8})


@pytest.fixture
def doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' own framework and workload, in this process."""
    monkeypatch.setattr(frameworks, "__path__", [*frameworks.__path__, str(DOUBLES / "frameworks")])
    monkeypatch.setattr(workloads, "__path__", [*workloads.__path__, str(DOUBLES / "workloads")])


def _imported_by_a_worker(condition: Condition, inputs: Path) -> set[str]:
    """The modules of benchlib that a worker has imported after all that is measured, as its Python says."""
    path = os.pathsep.join([str(own_code.PACKAGE.parent), str(DOUBLES)])
    worker = WorkerProcess(condition, 0, 300.0, {"PYTHONVERBOSE": "1", "PYTHONPATH": path})
    job = prepare_job(condition, 0, inputs)
    try:
        worker.opened()
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
    for procedure in PROCEDURES:
        hashed = own_code.files(condition, procedure)
        assert imported <= set(hashed), imported - set(hashed)
        of_parent = set(hashed) - imported
        assert not {name for name in of_parent if name.startswith(("benchlib.frameworks", "benchlib.workloads"))}
        assert hashed[f"benchlib.frameworks.{framework}"] == frameworks.file(framework)


def test_what_measures_counts_and_what_analyses_or_shows_does_not() -> None:
    measures = {
        "rounds": {
            "accelerators",
            "disturbance",
            "entries",
            "jobs",
            "npu_smi",
            "nvml",
            "processes",
            "record",
            "rounds",
            "sampler",
        },
        "gate": {"disturbance", "gate", "jobs", "nvml", "processes", "record", "samples", "trials"},
        "ceiling": {"ceiling", "disturbance", "jobs", "nvml", "processes", "record"},
    }
    measures["epochs"] = measures["rounds"] - {"rounds"} | {"epochs"}
    beside = {
        "rounds": {"analysis", "analysis.length"},
        "epochs": {"metrics", "data", "data.translations"},
        "gate": {
            "analysis",
            "analysis.certificates",
            "analysis.equivalence",
            "analysis.tolerances",
            "worker.check",
            "worker.packed",
        },
        "ceiling": set(),
    }
    of_worker = {
        *("", ".errors", ".frameworks", ".frameworks.pytorch", ".worker", ".worker.__main__", ".worker.batches"),
        *(".worker.channel", ".worker.ending", ".worker.files", ".worker.modules", ".worker.service", ".worker.steady"),
        *(".workloads", ".workloads.cnn"),
        *(".workloads.cnn.pytorch", ".workloads.cnn.workload", ".workloads.neutral", ".workloads.settled"),
    }
    for procedure in PROCEDURES:
        of_parent = {
            ".measure",
            *(f".measure.{name}" for name in measures[procedure]),
            *(f".{name}" for name in beside[procedure]),
        }
        assert set(own_code.files(CNN, procedure)) == {f"benchlib{name}" for name in of_worker | of_parent}
    group = CNN.but(world_size=2, threads=1)
    more = set(own_code.files(group, "rounds")) - set(own_code.files(CNN, "rounds"))
    assert more == {"benchlib.measure.group", "benchlib.worker.rank"}


def test_a_model_that_is_another_workload_s_depends_on_its_file() -> None:
    files = own_code.files(Condition(workload="resnet50_inference"), "rounds")
    for module in ("pytorch", "workload"):
        assert files[f"benchlib.workloads.resnet50.{module}"] == workloads.folder("resnet50") / f"{module}.py"
    assert "benchlib.workloads.resnet50.mindspore" not in files


def test_a_number_depends_on_condition_and_procedure_as_far_as_the_code_differs() -> None:
    before = own_code.digest(CNN, "rounds")
    assert before == own_code.digest(CNN.but(batch_size=8), "rounds")
    others = [
        own_code.digest(CNN.but(framework="mindspore"), "rounds"),
        *(own_code.digest(CNN, p) for p in PROCEDURES[1:]),
    ]
    assert len({before, *others}) == 5


@pytest.fixture
def needy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of workload ``cnn`` in a copy that stands before benchlib's own, with another workload beside it."""
    for name in ("cnn", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("WIDTH = 1\n")
        (tmp_path / name / "helper.py").write_text("from benchlib.workloads.other.deep import DEEP\nWIDTH = 1\n")
        for file in ("workload.py", "pytorch.py"):
            (tmp_path / name / file).write_text((workloads.folder("cnn") / file).read_text())
    (tmp_path / "other" / "deep.py").write_text("DEEP = 1\n")
    monkeypatch.setattr(workloads, "__path__", [str(tmp_path), *workloads.__path__])
    return tmp_path / "cnn"


@pytest.mark.parametrize(
    ("line", "helper"),
    [
        ("from .helper import WIDTH", "cnn/helper.py"),
        ("from . import helper", "cnn/helper.py"),
        ("from .helper import WIDTH", "other/deep.py"),
        ("from . import WIDTH", "cnn/__init__.py"),
        ("from ..other import helper", "other/helper.py"),
        ("from benchlib.workloads.cnn import helper", "cnn/helper.py"),
        ("from benchlib.workloads.other import WIDTH", "other/__init__.py"),
        ("from benchlib.workloads.other.helper import WIDTH", "other/helper.py"),
        ("import benchlib.workloads.other.helper as h", "other/helper.py"),
        ("import benchlib.workloads.other.deep", "other/__init__.py"),
        ("def late():\n    from benchlib.workloads.other.helper import WIDTH", "other/helper.py"),
        ("import importlib\nh = importlib.import_module('benchlib.workloads.other.helper')", "other/helper.py"),
        ("import importlib\nh = importlib.import_module('.helper', __package__)", "cnn/helper.py"),
        ("try:\n    import torch\nexcept ImportError:\n    from .helper import WIDTH", "cnn/helper.py"),
    ],
)
def test_a_helper_s_code_counts_however_it_is_imported(needy: Path, line: str, helper: str) -> None:
    model, helped = needy / "pytorch.py", needy.parent / helper
    plain = model.read_text()
    alone = own_code.digest(CNN, "rounds")
    model.write_text(f"{plain}\n{line}\n")
    before = own_code.digest(CNN, "rounds")
    assert before != alone
    helped.write_text(helped.read_text().replace("= 1", "= 23"))
    assert own_code.digest(CNN, "rounds") != before
    model.write_text(plain)
    if helper != "cnn/__init__.py":  # which runs, whoever names it
        assert own_code.digest(CNN, "rounds") == alone, "it is nobody's any more"


def test_what_only_a_type_checker_imports_does_not_count(needy: Path) -> None:
    model = needy / "pytorch.py"
    model.write_text(
        f"{model.read_text()}\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .helper import WIDTH\n"
        "else:\n    from ..other import deep\n"
    )
    files = own_code.files(CNN, "rounds")
    assert "benchlib.workloads.cnn.helper" not in files
    assert "benchlib.workloads.other.deep" in files


CODE = '''
"""What it is."""
import torch
WIDTH = 2
"""Of a layer."""
def build(values, *, deep=True):
    """Builds it."""
    return {"a": [WIDTH, 1.0], "b": f"{values!r}"}
'''


@pytest.mark.parametrize(
    "text",
    [
        CODE.replace("What it is", "What it is for"),
        CODE.replace('    """Builds it."""\n', ""),
        CODE.replace('"""Of a layer."""\n', "\n\n# Of a layer.\n"),
        CODE.replace("WIDTH = 2", "WIDTH = (\n    2\n)  # wide"),
        CODE.replace('[WIDTH, 1.0], "b"', "[\n        WIDTH,\n        1.0,\n    ], 'b'"),
    ],
)
def test_comments_docstrings_and_layout_are_no_code(needy: Path, text: str) -> None:
    (needy / "pytorch.py").write_text(CODE)
    before = own_code.digest(CNN, "rounds")
    assert text != CODE
    (needy / "pytorch.py").write_text(text)
    assert own_code.digest(CNN, "rounds") == before


@pytest.mark.parametrize(
    ("module", "more", "same"),
    [
        ("benchlib.frameworks.toy", "NEEDS = {}", True),
        ("benchlib.frameworks.toy", "NEEDS = {}\nDEEP = NEEDS", False),
        ("benchlib.frameworks.toy", "def momentum():\n    NEEDS = {}\n", False),
        ("benchlib.workloads.toy.pytorch", "NEEDS = {}", False),
    ],
)
def test_what_a_framework_needs_is_no_code_unless_something_reads_it(
    tmp_path: Path, module: str, more: str, same: bool
) -> None:
    digests = set()
    for value in ("0.9", "0.1"):
        file = tmp_path / f"{value}.py"
        file.write_text(f"{CODE}\n{more.format(value)}\n")
        digests.add(imports.digest({module: file}))
    assert (len(digests) == 1) == same


@pytest.mark.parametrize(
    "change",
    [
        ("WIDTH = 2", "WIDTH = 3"),
        ("WIDTH = 2", "WIDTH = 2.0"),
        ("WIDTH, 1.0", "WIDTH, True"),
        ("deep=True", "deep=None"),
        ('"a"', '"c"'),
        ("values!r", "values!s"),
        ("*, deep", "deep"),
        ("import torch", "import torch as WIDTH"),
    ],
)
def test_all_else_is_code(needy: Path, change: tuple[str, str]) -> None:
    (needy / "pytorch.py").write_text(CODE)
    before = own_code.digest(CNN, "rounds")
    (needy / "pytorch.py").write_text(CODE.replace(*change))
    assert own_code.digest(CNN, "rounds") != before


def test_a_file_that_is_no_python_is_told(needy: Path) -> None:
    (needy / "pytorch.py").write_text("def build(:\n")
    with pytest.raises(BenchlibError, match=r"cnn/pytorch.py: line 1: this is no Python"):
        own_code.digest(CNN, "rounds")


def test_a_hash_takes_less_than_a_millisecond_the_second_time() -> None:
    own_code.digest(CNN, "rounds")
    took = []
    for _ in range(50):
        started = os.times()
        for _ in range(20):
            own_code.digest(CNN, "rounds")
        took.append(os.times().user - started.user)
    assert sum(took) / 1000 < 1e-3


def test_the_commit_of_a_checkout_is_known_whoever_owns_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*command: str) -> str:
        return subprocess.run(["git", "-C", tmp_path, *command], capture_output=True, text=True, check=True).stdout

    (tmp_path / "benchlib").mkdir()
    (tmp_path / "benchlib" / "__init__.py").write_text("")
    monkeypatch.setattr(own_code, "PACKAGE", tmp_path / "benchlib")
    git("init")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-m", "a")
    head = git("rev-parse", "--short=12", "HEAD").strip()
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # as in a container, or on a shared disk
    assert own_code.commit.__wrapped__().endswith(f" {head}")
    (tmp_path / "benchlib" / "__init__.py").write_text("COUNT = 1")
    assert own_code.commit.__wrapped__().endswith(f" {head}+")
    monkeypatch.setattr(own_code, "PACKAGE", tmp_path / "benchlib" / "site-packages")
    assert head not in own_code.commit.__wrapped__(), "it is installed inside of another project's checkout"
    monkeypatch.setattr(own_code, "PACKAGE", tmp_path / "benchlib")
    monkeypatch.setenv("PATH", "")
    assert "commit not known: git: No such file" in own_code.commit.__wrapped__()
