"""Plug-ins are found by name and not imported; two of one name are refused; what they are is in keys and records."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import nbformat
import numpy as np
import pytest

from benchlib import data, frameworks, interpreters, metrics, plugins, workloads
from benchlib.cache import Measurement, Store, _condition
from benchlib.cli import main
from benchlib.condition import Condition
from benchlib.data.prepare import prepare
from benchlib.errors import BenchlibError
from benchlib.provenance import fingerprint, installed, knobs
from benchlib.runner import recording
from benchlib.runner.jobs import prepare_job
from benchlib.runner.processes import WorkerFailed, WorkerProcess

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "tests" / "plugin_package"
TOYBOX = PACKAGE / "toybox"
MAJORITY = {"workload": "majority", "framework": "abacus"}
LINEAR = {"workload": "linear", "framework": "abacus"}
ROLES = ("baseline", "control", "condition")


def plugins_of(condition: Condition) -> dict[str, str]:
    return plugins.of_condition(condition.framework, condition.workload, condition.data)


@pytest.fixture(autouse=True)
def nothing_used(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No plug-in is there before a test, nor after it."""
    before = set(sys.modules)
    monkeypatch.setenv(plugins.VARIABLE, "")
    monkeypatch.setattr(plugins, "_used", [])
    for package in plugins.KINDS.values():
        monkeypatch.setattr(package, "__path__", list(package.__path__))
    for asked in (interpreters.probe, installed._imported_modules):
        asked.cache_clear()
    yield
    for name in set(sys.modules) - before:
        if name.startswith(tuple(f"benchlib.{kind}." for kind in plugins.KINDS)):
            del sys.modules[name]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the plug-in's modules, as a folder that a user would name."""
    return shutil.copytree(TOYBOX, tmp_path / "mine", ignore=shutil.ignore_patterns("__pycache__"))


def install(site: Path, name: str, package: str) -> None:
    """Leave in ``site`` what pip leaves of a distribution whose entry point names a package."""
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{plugins.ENTRY_POINTS}]\n{name} = {package}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages with the plug-in, whose package must not be imported."""
    shutil.copytree(TOYBOX, tmp_path / "site" / "toybox")
    install(tmp_path / "site", "toybox", "toybox")
    monkeypatch.syspath_prepend(tmp_path / "site")
    return tmp_path / "site"


def test_a_folder_s_plug_ins_have_names(folder: Path) -> None:
    plugins.use([folder])
    assert "abacus" in frameworks.names()
    assert frameworks.file("abacus") == folder / "frameworks" / "abacus.py"
    assert {"majority", "cnn"} <= set(workloads.names())
    assert data.title("bits") == "bits"
    own = {path.stem for path in (Path(workloads.__file__).parent / "linear").glob("[a-z]*.py")}
    assert set(workloads.load("linear").frameworks()) == {"abacus", *own - {"workload"}}, "which it adds to"
    assert Condition(**MAJORITY).data == "bits"
    assert Condition(**LINEAR, lane="tuned").lane == "tuned"
    with pytest.raises(BenchlibError, match=r"unknown mode of abacus 'graph'.*there are: eager"):
        Condition(**MAJORITY, mode="graph")
    with pytest.raises(BenchlibError, match=r"unknown precision of abacus 'bf16'"):
        Condition(**MAJORITY, precision="bf16")


def test_what_only_helps_is_there_to_be_imported_and_is_no_plug_in(folder: Path) -> None:
    (folder / "frameworks" / "_beads.py").write_text("COUNT = 10\n")
    (folder / "workloads" / "_common").mkdir()
    (folder / "workloads" / "_common" / "__init__.py").write_text("COUNT = 20\n")
    (folder / "data" / "_rows.py").write_text("COUNT = 30\n")
    (folder / "frameworks" / "abacus.py").write_text(
        (folder / "frameworks" / "abacus.py").read_text() + "\nfrom ._beads import COUNT\n"
    )
    plugins.use([folder])
    assert "_beads" not in frameworks.names()
    assert "_common" not in workloads.names()
    assert "_rows" not in data.names()
    for name, count in {"frameworks._beads": 10, "workloads._common": 20, "data._rows": 30}.items():
        assert count == importlib.import_module(f"benchlib.{name}").COUNT
    code = fingerprint.digest(Condition(**MAJORITY), "rounds")
    (folder / "frameworks" / "_beads.py").write_text("COUNT = 11\n")
    assert fingerprint.digest(Condition(**MAJORITY), "rounds") != code


def test_a_worker_runs_a_plug_in_s_sources_and_no_other_code_of_their_names(folder, tmp_path, stale) -> None:
    abacus, beads = folder / "frameworks" / "abacus.py", folder / "frameworks" / "_beads.py"
    beads.write_text("VERSION = '2.0'\n")
    text = abacus.read_text().replace('"abacus": "1.0"', '"abacus": VERSION')
    abacus.write_text(f"{text}\nfrom benchlib.frameworks._beads import VERSION\n")
    plugins.use([folder])
    condition = Condition(**MAJORITY)
    job, known = prepare_job(condition, 0, tmp_path / "inputs"), fingerprint.files(condition, "rounds")
    for file in (abacus, beads, *(folder / "workloads" / "majority").glob("*.py")):
        stale(file)
    with WorkerProcess(condition, 0) as worker:
        assert worker.finish_open()["versions"]["abacus"] == "2.0"
        worker.ask("build", **job.document())
        recording.require_hashed(worker, known)
    by_hand = f"SourceFileLoader('benchlib.frameworks._beads', {str(beads)!r}).load_module().VERSION"
    for made in (by_hand, "sys.modules.setdefault('benchlib.frameworks._beads', types.ModuleType('_')) and '3.0'"):
        abacus.write_text(f"{text}\nfrom importlib.machinery import *\nimport sys, types\nVERSION = {made}\n")
        beads.write_text("VERSION = '3.0'  # of another size than the stale one\n")
        with WorkerProcess(condition, 0) as worker:
            worker.finish_open()
            with pytest.raises(WorkerFailed, match=f"not by importing {beads}"):
                recording.require_hashed(worker, known)


def test_what_editors_leave_is_no_plug_in(folder: Path, tmp_path: Path) -> None:
    plugins.use([folder])
    before = [plugins.files(), plugins_of(Condition(**MAJORITY)), prepare(Condition(**MAJORITY), 0, tmp_path)]
    (folder / "workloads" / ".ipynb_checkpoints").mkdir()
    for place in (*(folder / kind for kind in plugins.KINDS), *(folder / "workloads").glob("[a-z]*")):
        (place / "._abacus.py").write_bytes(b"\x00\x05\x16\x07\xff")  # macOS leaves it on other file systems
        (place / ".#abacus.py").symlink_to("user@host.1234")  # Emacs's lock
        (place / ".ipynb_checkpoints").mkdir(exist_ok=True)
        (place / ".ipynb_checkpoints" / "abacus-checkpoint.py").write_text("")
    plugins.use([folder])
    assert before == [plugins.files(), plugins_of(Condition(**MAJORITY)), prepare(Condition(**MAJORITY), 0, tmp_path)]
    assert not [name for name in workloads.load("majority").frameworks() if name.startswith(".")]
    assert fingerprint.digest(Condition(**MAJORITY), "rounds")


def test_what_a_framework_declares_is_used(folder: Path) -> None:
    plugins.use([folder])
    tuned = Condition(**MAJORITY, lane="tuned")
    assert knobs.for_session(tuned) == {"beads": "wooden"}
    assert knobs.for_session(tuned.but(lane="default")) == {}
    assert "beads" not in knobs.find(Condition(workload="linear", lane="tuned")), "it is for this framework alone"
    assert knobs.neutralising_reasons(tuned) == {"ABACUS_POLISH": "polish rounds the last digit"}
    assert knobs.of_gate(tuned) == {"OMP_WAIT_POLICY": "passive", "ABACUS_POLISH": "none"}
    assert "ABACUS_" in frameworks.every_variable()
    assert installed.compiler(tuned) == {}


@pytest.mark.parametrize(("shape", "convolves"), [((8, 3, 3, 3), True), ((1, 64, 192), False)])
def test_a_plug_in_s_convolutions_have_their_knobs_without_a_word(folder, shape, convolves) -> None:
    file = folder / "workloads" / "majority" / "workload.py"
    file.write_text(file.read_text().replace('"bias": Weight((2,)', f'"bias": Weight({shape}'))
    for framework in ("pytorch", "mindspore"):
        (file.parent / f"{framework}.py").write_text("")
    plugins.use([folder])
    tuned = {one: Condition(workload="majority", framework=one, lane="tuned") for one in ("pytorch", "mindspore")}
    found = [knobs.for_session(tuned["pytorch"]).get("channels_last"), knobs.find(tuned["mindspore"])]
    assert (found[0] == "on", "ONEDNN_MAX_CPU_ISA" in found[1]) == (convolves, convolves)


def test_a_declaration_that_cannot_be_read_is_told(folder: Path) -> None:
    file = folder / "frameworks" / "abacus.py"
    text = file.read_text()
    plugins.use([folder])
    file.write_text(text.replace('DEVICES = ("cpu",)', 'DEVICES = tuple(["cpu"])'))
    os.utime(file, ns=(1, 1))
    with pytest.raises(BenchlibError, match=r"abacus\.py: line \d+: DEVICES must be a literal: it is read"):
        frameworks.devices("abacus")
    file.write_text(text.replace('"reason": "wooden', '"because": "wooden'))
    os.utime(file, ns=(3, 3))
    with pytest.raises(BenchlibError, match=r"abacus\.py: KNOBS: (?s:.*)unknown key 'because'.*there are: .*name"):
        knobs.declared_knobs("abacus")


def test_entry_points_are_found_and_nothing_of_them_is_imported(site: Path) -> None:
    plugins.use()
    assert "abacus" in frameworks.names()
    condition = Condition(**MAJORITY)
    assert plugins_of(condition) == {"plug-in toybox": "1.0"}
    assert plugins_of(Condition(**LINEAR)) == {"plug-in toybox": "1.0"}
    assert plugins_of(Condition(workload="linear")) == {}, "it adds to that workload, but not to this framework"
    assert "toybox" not in sys.modules


def test_two_of_one_name_are_refused_and_nothing_changes(folder: Path, site: Path, tmp_path: Path) -> None:
    with pytest.raises(BenchlibError, match=rf"two of one name: frameworks/abacus.py comes from toybox, .*{folder}"):
        plugins.use([folder])
    assert "abacus" not in frameworks.names()
    assert not os.environ[plugins.VARIABLE]
    shutil.copytree(site / "toybox" / "data", site / "other" / "data")
    install(site, "otherbox", "other")
    with pytest.raises(BenchlibError, match=r"two of one name: data/bits.py comes from (toybox|otherbox), and from"):
        plugins.use()


@pytest.mark.parametrize("place", ["frameworks/pytorch.py", "data/images.py", "workloads/linear/pytorch.py"])
def test_the_names_of_benchlib_s_own_are_taken(place: str, tmp_path: Path) -> None:
    (tmp_path / place).parent.mkdir(parents=True)
    (tmp_path / place).touch()
    with pytest.raises(BenchlibError, match=rf"two of one name: {place} comes from benchlib itself, and .*{tmp_path}"):
        plugins.use([tmp_path])


def test_two_may_add_to_a_workload_but_not_the_same_file(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "workloads" / "majority"
    other.mkdir(parents=True)
    (other / "rods.py").write_text("")
    plugins.use([folder, tmp_path / "other"])
    assert workloads.load("majority").frameworks() == ["abacus", "rods"]
    (other / "abacus.py").write_text("")
    with pytest.raises(BenchlibError, match=r"two of one name: workloads/majority/abacus.py comes from .*mine, and"):
        plugins.use()
    shutil.rmtree(other.parents[1])
    (other.parent / "minority").mkdir(parents=True)
    (other.parent / "minority" / "rods.py").write_text("")
    with pytest.raises(BenchlibError, match=r"no workload.py in it, and no workload 'minority' that it adds to"):
        plugins.use()


def test_what_is_no_plug_in_is_told(tmp_path: Path, site: Path) -> None:
    with pytest.raises(BenchlibError, match=r"there are none; they lie in frameworks/NAME.py"):
        plugins.use([tmp_path / "nothing"])
    install(site, "gonebox", "toybox.gone")
    with pytest.raises(BenchlibError, match=r"gonebox: entry point gonebox = toybox.gone .*no such package"):
        plugins.use()


@pytest.mark.parametrize(
    "file", ["frameworks/abacus.py", "workloads/majority/workload.py", "workloads/linear/abacus.py"]
)
def test_a_plug_in_s_code_is_in_the_key_and_its_files_are_in_the_record(folder: Path, file: str) -> None:
    plugins.use([folder])
    condition = Condition(**MAJORITY)
    code, named = fingerprint.digest(condition, "rounds"), plugins_of(condition)
    assert named.keys() == {f"plug-in {folder}"}
    (folder / file).write_text((folder / file).read_text() + "\nMORE = 1\n")
    assert fingerprint.digest(condition, "rounds") != code
    if "linear" not in file:  # whose files the workload only imports
        assert plugins_of(condition) != named


@pytest.mark.parametrize("name", ["bits", "_rows"])
def test_a_data_set_s_code_is_in_the_name_of_what_is_prepared(folder: Path, tmp_path: Path, name: str) -> None:
    file = folder / "data" / f"{name}.py"
    file.touch()
    plugins.use([folder])
    before = prepare(Condition(**MAJORITY), 0, tmp_path)
    file.write_text(file.read_text() + "\nMORE = 1\n")
    assert prepare(Condition(**MAJORITY), 0, tmp_path) != before


def test_what_a_plug_in_measured_is_refused_by_its_name_where_it_is_not_named(folder, tmp_path, monkeypatch) -> None:
    plugins.use([folder])
    condition = Condition(**MAJORITY)
    common = {"kind": "comparison", "group": "g", "file": "f", "repetition": 0, "seed": 0, "started_utc": "2026-11-01"}
    store = Store(tmp_path / "measurements")
    versions = {"abacus": "1.0", **plugins_of(condition)}
    store.save([Measurement(**common, role=role, condition=condition, versions=versions) for role in ROLES])
    assert store.load("f"), "with the plug-in it is read"
    for kind, package in plugins.KINDS.items():
        monkeypatch.setattr(package, "__path__", [str(plugins.OWN / kind)])
    _condition.cache_clear()
    told = rf"f\.parquet: .*unknown framework 'abacus'.*name its plug-in with --plugins \(plug-in {folder}\)"
    with pytest.raises(BenchlibError, match=told):
        store.all()


def test_the_metric_is_the_workload_s_own(folder: Path) -> None:
    plugins.use([folder])
    workload = workloads.load("majority")
    labels = {"test_labels": np.array([0, 0, 0, 1])}
    assert metrics.limits(workload) == (0.0, 1.0)
    assert metrics.measure(workload, np.array([0, 0, 0, 0]), labels) == 0.5
    assert metrics.wrong(workload, np.array([0, 0]), labels) == "predictions of 2 samples for 4"


def test_the_command_line_takes_a_folder(folder: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["devices", "--plugins", str(folder)]) == 0
    assert "abacus 1.26.4, cpu: usable" in capsys.readouterr().out.splitlines()
    assert os.environ[plugins.VARIABLE] == str(folder)


# The package, installed, goes the whole way in an interpreter of its own. It takes a minute.

WAY = """
import json, sys
from pathlib import Path
from benchlib import doctor
from benchlib.lab import Lab
from benchlib.condition import Condition
lab = Lab(outputs="outputs/way")
majority, linear = Condition(workload="majority", framework="abacus"), Condition(workload="linear", framework="abacus")
compared = lab.compare([majority, majority.but(lane="tuned")], budget_s=30, block_s=0.05, pilot=3)
trained = lab.train([majority], seeds=[0], epochs=3, threshold=0.9)
rows = doctor.check("abacus", Path("inputs"))
print("RESULT " + json.dumps({
    "verdicts": [one.verdict for one in lab.certify([majority, linear]).values()],
    "reference": next(iter(lab.certify([linear]).values())).reference.framework,
    "ratios": len(compared.ratios()),
    "versions": compared.measurements[0].versions,
    "failures": [m.failure for m in [*compared.measurements, *trained.measurements] if m.failure],
    "metric": trained.runs()["metric"].tolist(),
    "broken": [f"{row.what}: {row.why}" for row in rows if row.why],
    "imported": "toybox" in sys.modules,
}))
"""
ABACUS = {"framework": "abacus", "mode": "eager", "lane": "default"}
PARAMETERS = {
    **{"workload": "majority", "data": "bits", "device": "cpu", "hyperparameters": {}, "batch_sizes": [16]},
    **{"subjects": [ABACUS, ABACUS | {"lane": "tuned"}], "accuracy_subjects": [ABACUS], "learning_rate": 0.5},
    "settings": {"precision": 0.03, "budget_s": 30, "pilot": 3, "block_s": 0.05, "margin": 0.05},
    **{"accuracy_batch_sizes": [16, 64], "train_samples": None, "epochs": 2, "seeds": [0]},
}


@pytest.fixture(scope="module")
def with_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has the package, built and installed by pip, beside all that this one has."""
    folder = tmp_path_factory.mktemp("installed")
    source = shutil.copytree(PACKAGE, folder / "source")
    venv.create(folder / "venv", symlinks=True)
    python = folder / "venv" / "bin" / "python"
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "venv")}))
    (packages / "beside.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--no-build-isolation", str(source)], check=True)
    return python


def ran(python: Path, folder: Path, *arguments: str) -> str:
    templates = str(Path(sys.prefix, "share", "jupyter"))  # of the packages beside
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JUPYTER_PATH": templates}
    done = subprocess.run([python, *arguments], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
def test_a_package_goes_through_gate_comparison_training_and_conformance(with_package: Path, tmp_path: Path) -> None:
    result = json.loads(ran(with_package, tmp_path, "-c", WAY).rpartition("RESULT ")[2])
    versions, metric = result.pop("versions"), result.pop("metric")
    assert (versions["plug-in toybox"], versions["abacus"], metric[0] > 0.9) == ("0.3", "1.0", True)
    # benchlib's own workload is compared with PyTorch's
    expected = {"verdicts": ["same", "same"], "reference": "pytorch", "ratios": 2, "imported": False}
    assert result == expected | {"failures": [], "broken": []}


@pytest.mark.slow
def test_a_package_goes_through_a_notebook_and_the_report(with_package: Path, tmp_path: Path) -> None:
    (tmp_path / "parameters" / "toys").mkdir(parents=True)
    (tmp_path / "parameters" / "toys" / "batch_size.yaml").write_text(json.dumps(PARAMETERS))
    (tmp_path / "notebooks").mkdir()
    for name in ("batch_size", "claims", "report"):
        shutil.copy(ROOT / "notebooks" / f"{name}.ipynb", tmp_path / "notebooks")
    said = ran(with_package, tmp_path, "-m", "benchlib", "run", "--profile", "toys")
    assert "failed" not in said
    results = tmp_path / "outputs" / "toys"
    assert "balanced accuracy" in (results / "tables" / "batch_size_metric.md").read_text()
    notebook = nbformat.read(results / "notebooks" / "batch_size.ipynb", as_version=4)
    assert not [o for cell in notebook.cells for o in cell.get("outputs", []) if o.output_type == "error"]
    assert "majority" in (results / "report.html").read_text()


def test_every_field_of_a_workload_is_explained() -> None:
    explained = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    assert not [one.name for one in fields(workloads.Workload) if not re.search(rf"`{one.name}\b", explained)]
