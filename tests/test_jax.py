"""JAX's session in the environment ``jax``, as far as ``test_frameworks.py`` does not see it, where that is made."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from benchlib import environments, frameworks, knobs, plugins
from benchlib.condition import Condition
from benchlib.measure import conformance, contract
from benchlib.measure.processes import PATIENCE_S

HERE = Path(__file__).resolve().parent
pytestmark = pytest.mark.skipif(
    environments.why_absent("jax") is not None,
    reason="there is no environment jax, in which this is tried: .venv/bin/benchlib environment create jax",
)
FORGETFUL = '''
from benchlib.frameworks.jax import Session as Waiting

PACKAGE = "jax"
DEVICES = ("cpu",)
MODES = ("graph",)


class Session(Waiting):
    def synchronize(self):
        """Forgets to."""
'''


def test_the_session_keeps_its_promises_in_both_modes(tmp_path: Path) -> None:
    rows = conformance.check("jax", tmp_path, environment="jax")
    assert {row.mode for row in rows} == set(frameworks.modes("jax"))
    assert not [row for row in rows if not row.passed]


def test_nothing_is_left_at_work_by_an_answer_in_eager_mode() -> None:
    """It would run into the next block that is timed."""
    command = [environments.find("jax").python, str(HERE / "jax_session.py")]
    surroundings = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    asked = subprocess.run(command, env=surroundings, capture_output=True, text=True)
    assert asked.returncode == 0, asked.stderr[-4000:]
    counts = json.loads(asked.stdout)
    assert counts == {"outputs": [4, 0], "gradients": [4, 0]}, "the output and gradients of input, weight and bias"


@pytest.fixture
def forgetful(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a framework that is JAX with a session which does not wait: a plug-in, as long as the test runs."""
    monkeypatch.setenv(plugins.VARIABLE, "")
    monkeypatch.setattr(plugins, "_used", plugins._Used())
    for package in plugins.KINDS.values():
        monkeypatch.setattr(package, "__path__", list(package.__path__))
    for file, text in {
        "frameworks/jax_forgetful.py": FORGETFUL,
        "workloads/cnn/jax_forgetful.py": "from benchlib.workloads.cnn.jax import build, loss, optimizer",
    }.items():
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(text, encoding="utf-8")
    plugins.use([tmp_path])
    return "jax_forgetful"


def test_a_session_that_forgets_to_wait_fails_the_timers_test(forgetful: str, tmp_path: Path) -> None:
    waiting = Condition(
        workload="cnn",
        framework="jax",
        environment="jax",
        mode="graph",  # in eager mode operations as small as these are done at once
        batch_size=32,
        hyperparameters={"image_size": 8},
    )
    assert contract.check(waiting, tmp_path / "inputs", PATIENCE_S).ok
    found = contract.check(waiting.but(framework=forgetful), tmp_path / "inputs", PATIENCE_S)
    assert not found.ok
    assert not found.failure


@pytest.mark.parametrize(
    ("device", "in_gate", "setting", "value"),
    [("cuda", True, "jax_default_matmul_precision", "highest"), ("cpu", False, "jax_platforms", "cpu")],
)
def test_jax_heeds_the_variables_of_its_knobs(device: str, in_gate: bool, setting: str, value: str) -> None:
    condition = Condition(workload="cnn", framework="jax", environment="jax", mode="graph", device=device)
    variables = knobs.of_gate(condition) if in_gate else knobs.of(condition)
    code = f"import jax; print(jax.config.{setting})"
    command = [environments.find("jax").python, "-c", code]
    asked = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=True)
    assert asked.stdout.strip() == value
