"""The commands under benchmarks/: each starts, and what they ask for exists. What they print takes too long here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks"
NEEDS_MORE = {"pyperf_step"}  # packages that are not in the lock
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
    """In the README, or started by one that is."""
    told = (ROOT / "README.md").read_text(encoding="utf-8")
    others = [path.read_text(encoding="utf-8") for path in FOLDER.glob("*.py") if path.stem != name]
    started = any(f"import {name}\n" in text or f'"{name}.py"' in text for text in others)
    assert f"benchmarks/{name}.py" in told or started
