"""The core: what is installed without extras. It imports without them, and says which one brings what is not there."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import benchlib
from benchlib import metrics, progress, workloads
from benchlib.cli import main
from benchlib.data import digits_graph, digits_sequence, downloads, number_names
from benchlib.errors import BenchlibError
from benchlib.provenance import nvml
from benchlib.runner import availability

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
OF_TESTS = {"packaging", "pytest"}  # pytest brings packaging

IMPORTED_ALONE = """
import importlib, pkgutil, sys
class Refusal:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1:]:
            raise ModuleNotFoundError(f"an extra brings {name}", name=name)
sys.meta_path.insert(0, Refusal())
import benchlib
core = "cache condition data doctor environments equivalence errors lab manifest metrics plugins progress provenance"
core = {*core.split(), "runner", "scratch", "stats", "validation"}
for module in pkgutil.walk_packages(benchlib.__path__, "benchlib."):
    if module.name.split(".")[1] in core:
        importlib.import_module(module.name)
from benchlib import Certificate, Comparison, Condition, Interval, Lab, TrainingRuns
print(Lab.__module__)
"""


def _distributions(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(one).name) for one in requirements}


def _modules_of_extras() -> list[str]:
    """Top-level modules that an extra brings and the core does not, as far as they are installed here."""
    only = {name for extra in EXTRAS.values() for name in _distributions(extra)}
    only -= _distributions(PROJECT["dependencies"]) | OF_TESTS
    modules = importlib.metadata.packages_distributions().items()
    return [module for module, brought in modules if {canonicalize_name(name) for name in brought} <= only]


def _said(script: str, *arguments: str) -> str:
    """What a program prints that imports the benchlib that these tests import."""
    place = Path(benchlib.__file__).parents[1]
    command = [sys.executable, "-c", script, *arguments]
    ended = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_importing_benchlib_imports_nothing_else():
    script = "import sys; before = {*sys.modules}; import benchlib; print(*{*sys.modules} - before)"
    assert _said(script).split() == ["benchlib"]


def test_the_core_imports_without_what_extras_bring():
    assert _said(IMPORTED_ALONE, *_modules_of_extras()).strip() == "benchlib.cluster.lab"


def test_public_names_are_offered_and_others_are_not_there():
    names = {"Certificate", "Comparison", "Condition", "Interval", "Lab", "TrainingRuns"}
    assert names <= set(dir(benchlib))
    assert all(getattr(benchlib, name).__name__ == name for name in names)
    with pytest.raises(ImportError, match="cannot import name 'Laboratory' from 'benchlib'"):
        from benchlib import Laboratory  # noqa: F401


@pytest.mark.parametrize(
    ("module", "needing", "purpose"),
    [
        ("sklearn", digits_graph.require, "scikit-learn's digits"),
        ("sklearn", digits_sequence.require, "scikit-learn's digits"),
        ("num2words", number_names.require, "data 'number_names'"),
        ("sacrebleu", lambda: metrics.require(workloads.load("seq2seq")), "metric 'bleu'"),
        ("pooch", lambda: downloads.download("", "", "CIFAR-10", ""), "CIFAR-10, which has to be downloaded,"),
    ],
)
def test_what_an_extra_brings_is_named_with_it(monkeypatch, module, needing, purpose):
    monkeypatch.undo()  # of what stands in for scikit-learn's digits
    monkeypatch.setitem(sys.modules, module, None)
    refusal = f"{purpose} needs {module}, which is not installed: pip install 'benchlib[data]'"
    with pytest.raises(BenchlibError, match=re.escape(refusal)):
        needing()


@pytest.mark.parametrize("command", ["run", "report", "lab", "appendix", "clean"])
def test_commands_of_the_suite_name_its_extra(monkeypatch, capsys, command):
    monkeypatch.setitem(sys.modules, "papermill", None)
    assert main([command]) == 2
    refusal = f"error: benchlib {command} needs papermill, which is not installed: pip install 'benchlib[suite]'\n"
    assert capsys.readouterr().err == refusal


def test_progress_of_a_program_that_a_notebook_starts_is_said_in_lines(monkeypatch, capsys):
    """It is no kernel, and may have no IPython, though JupyterLab's variable has come down to it."""
    monkeypatch.setenv("JPY_SESSION_NAME", "a notebook")
    monkeypatch.delenv(progress.FILE_VARIABLE, raising=False)
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    with progress.Progress(1, "work"):
        pass
    assert capsys.readouterr().err.splitlines()[0] == "work: 0/1"


@pytest.fixture
def without_nvml(monkeypatch):
    for name in ("gpus", "handles"):
        monkeypatch.setattr(nvml, name, getattr(nvml, name).__wrapped__)
    monkeypatch.setattr(nvml, "pynvml", None)


@pytest.mark.usefixtures("without_nvml", "toy_framework")
def test_without_its_extra_gpus_are_not_seen_and_the_reason_is_told(monkeypatch):
    assert nvml.handles() == []
    assert nvml.gpus() == ()
    monkeypatch.setattr(availability.frameworks, "devices", lambda name: ("cpu", "cuda"))
    assert "the NVIDIA driver shows no GPU" in availability.why_absent("toy", "cuda")
    monkeypatch.setattr(nvml.Path, "glob", lambda self, pattern: iter([Path("/dev/nvidia0")]))
    assert "pip install 'benchlib[nvidia]'" in availability.why_absent("toy", "cuda")
