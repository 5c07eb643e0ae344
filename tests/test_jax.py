"""JAX's session in the environment ``jax``, as far as ``test_frameworks.py`` does not see it, where that is made."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from benchlib import doctor, environments, frameworks
from benchlib.condition import Condition
from benchlib.provenance import knobs

HERE = Path(__file__).resolve().parent
pytestmark = pytest.mark.skipif(
    environments.why_absent("jax") is not None,
    reason="there is no environment jax, in which this is tried: .venv/bin/benchlib environment create jax",
)


def test_the_session_keeps_its_promises_in_both_modes(tmp_path: Path) -> None:
    rows = list(doctor.check("jax", tmp_path, environment="jax"))
    assert {row.mode for row in rows} == set(frameworks.modes("jax"))
    assert not [row for row in rows if row.why]


def test_nothing_is_left_at_work_by_an_answer_in_eager_mode() -> None:
    """It would run into the next block that is timed."""
    command = [environments.find("jax").python, str(HERE / "jax_session.py")]
    surroundings = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    asked = subprocess.run(command, env=surroundings, capture_output=True, text=True)
    assert asked.returncode == 0, asked.stderr[-4000:]
    counts = json.loads(asked.stdout)
    assert counts == {"outputs": [4, 0], "gradients": [4, 0]}, "the output and gradients of input, weight and bias"


@pytest.mark.parametrize(
    ("device", "in_gate", "setting", "value"),
    [
        ("cuda", True, "jax_default_matmul_precision", "highest"),
        ("cpu", False, "jax_platforms", "cpu"),
        ("cpu", False, "jax_default_prng_impl", "rbg"),
    ],
)
def test_jax_heeds_the_variables_of_its_knobs(device: str, in_gate: bool, setting: str, value: str) -> None:
    chosen = {"framework": "jax", "environment": "jax", "mode": "graph", "lane": "tuned"}
    condition = Condition(workload="cnn", device=device, **chosen)
    variables = knobs.of_gate(condition) if in_gate else knobs.find(condition)
    code = f"import jax; print(jax.config.{setting})"
    command = [environments.find("jax").python, "-c", code]
    asked = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=True)
    assert asked.stdout.strip() == value
