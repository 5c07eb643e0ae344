"""The commands under benchmarks/: each starts, and what they ask for exists. What they print takes too long here."""

import importlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from benchlib import env_vars, environments, workloads
from benchlib.cache import Block, Measurement, Store
from benchlib.condition import Condition
from benchlib.equivalence import gate

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks"
NEEDS_MORE = {"pyperf_step", "tensorflow_choices"}  # packages that are not in the lock
COMMANDS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in NEEDS_MORE)

IMPORT_ALL = f"""
import importlib, sys
sys.path.insert(0, {str(FOLDER)!r})
for name in sys.argv[1:]:
    importlib.import_module(name)
import kinks, training
assert kinks.condition().workload == "cnn"
from benchlib.condition import Condition
for name, task in training.TASKS.items():
    Condition(workload=name, **{{key: value for key, value in task.items() if key in ("data", "hyperparameters")}})
"""


def test_every_command_can_be_imported_and_names_what_exists(tmp_path: Path) -> None:
    command = [sys.executable, "-c", IMPORT_ALL, *COMMANDS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_known_to_a_reader(name: str) -> None:
    """In docs/, or started by one that is."""
    told = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))
    others = [path.read_text(encoding="utf-8") for path in FOLDER.glob("*.py") if path.stem != name]
    started = any(f"import {name}\n" in text or f'"{name}.py"' in text for text in others)
    assert f"benchmarks/{name}.py" in told or started


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch):
    """The module of a command, by name."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module


def measured(role: str, repetition: int, step_s: float, condition: Condition, **more: object) -> Measurement:
    blocks = [
        Block(round=number, position=0, steps=1, samples=1, started_s=0.0, wall_s=step_s * drift, cpu_s=step_s)
        for number, drift in enumerate((1.0, 1.01, 1.0, 0.99))
    ]
    given = {"kind": "comparison", "group": "group", "file": f"file-{repetition}", "seed": 0, "started_utc": "now"}
    times = {"repetition_s": 10.0, "rounds_s": 8.0}
    return Measurement(**given | times | more, role=role, repetition=repetition, condition=condition, blocks=blocks)


@pytest.fixture
def no_workload_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(env_vars.WORKER_PATH, "")
    monkeypatch.setattr(workloads, "__path__", [*workloads.__path__])


def test_real_comparisons_differ_within_a_folder_and_share_certificates_over_batch_sizes(command, no_workload_stays):
    (real := command("real")).plant()
    asked = list(real.in_folders(100))
    assert sum(len(batch_sizes) for *_, batch_sizes in asked) == 100
    assert sum(len(batch_sizes) for *_, batch_sizes in real.in_folders(7)) == 7
    by_folder: dict[Path, list[Condition]] = {}
    for folder, number, batch_sizes in asked:
        by_folder.setdefault(folder, []).extend(
            condition for batch_size in batch_sizes for condition in real.in_tuned_lane(number, batch_size)
        )
    assert len(by_folder) == 5
    for conditions in by_folder.values():
        assert len(set(conditions)) == len(conditions) == 60
        assert len({gate.adapt(condition) for condition in conditions}) == 15, "one for each share and number"


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    """A finished folder: two ratios and one control, two files of measurements, and a training's."""
    (tmp_path / "tables").mkdir()
    (tmp_path / "notebooks").mkdir()
    ratios = {"ratio": [2.0, 1.0, None], "ratio_low": [1.8, 0.7, None], "ratio_high": [2.2, 1.3, None]}
    control = {"control": 1.0, "control_low": 0.95, "control_high": 1.05}
    pd.DataFrame({**ratios, **control}).to_csv(tmp_path / "tables" / "one_ratios.csv", index=False)
    resolution = pd.DataFrame({"ratio": [1.0], "ratio_low": [0.95], "ratio_high": [1.05]})
    resolution.to_csv(tmp_path / "tables" / "instrument_resolution.csv", index=False)
    store, condition = Store(tmp_path / "measurements"), Condition(workload="cnn")
    store.save([measured(role, 0, 1.0, condition) for role in ("baseline", "control", "condition")])
    shorter = {"repetition_s": 5.0, "rounds_s": 3.0}
    store.save([measured(role, 1, 1.0, condition, **shorter) for role in ("baseline", "control")])
    store.save([measured("training", 0, 1.0, condition, kind="training", file="training")])
    for name, seconds in (("one", 60.0), ("report", 30.0)):
        (tmp_path / "notebooks" / f"{name}.json").write_text(json.dumps({"seconds": seconds}))
    return tmp_path


def test_a_finished_report_is_summed_up(command, outputs: Path) -> None:
    rows = command("quick").rows(outputs)
    assert rows["ratios"] == "2", "of A/A and of what has no interval there is none"
    assert (rows["half-width of ratios %: median"], rows["worst"]) == ("20.0", "30.0")
    assert (rows["A/A controls"], rows["half-width of A/A %: median"]) == ("1", "5.0")
    assert rows["of that rounds %"] == "73", "11 of 15 s: those measured together have the same times"
    assert rows["processes in comparisons"] == "5"
    assert (rows["minutes"], rows["minutes of comparisons"]) == ("1.5", "0.2")
    (outputs / "clock.json").write_text(json.dumps({"of": "inputs", "seconds": 600.0}))
    assert command("quick").rows(outputs)["minutes"] == "11.5"


@pytest.fixture
def libraries(command, no_workload_stays) -> ModuleType:
    module = command("libraries")
    module.put_beside()
    return module


def test_a_librarys_model_and_ours_differ_in_their_code_alone(libraries: ModuleType) -> None:
    cases = libraries.cases()
    assert {case.ours.framework for case in cases} == set(libraries.FRAMEWORKS)
    for case in cases:
        own, its = case.ours.model_dump(), case.library.model_dump()
        assert its.pop("workload") == f"{own.pop('workload')}_library"
        its["hyperparameters"].pop("norm_momentum", None)  # which ours has in its code
        assert its == own


def test_what_a_library_needs_and_is_not_there_is_named_with_what_makes_it(libraries, tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "root", lambda: tmp_path)
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "mxnet.txt").touch()
    (case,) = (case for case in libraries.cases() if case.ours.framework == "mxnet")
    assert "benchlib environment create mxnet" in case.missing
    needy = replace(libraries.cases()[0], package="no_such_package")
    assert "pip install no_such_package" in needy.missing
