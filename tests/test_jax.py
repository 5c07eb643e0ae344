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


@pytest.fixture(scope="module")
def said() -> dict:
    command = [environments.find("jax").python, str(HERE / "jax_session.py")]
    surroundings = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    asked = subprocess.run(command, env=surroundings, capture_output=True, text=True)
    assert asked.returncode == 0, asked.stderr[-4000:]
    return json.loads(asked.stdout)


def test_nothing_is_left_at_work_by_an_answer_in_eager_mode(said: dict) -> None:
    """It would run into the next block that is timed."""
    counts = said["left"]
    assert counts == {"outputs": [4, 0], "gradients": [4, 0]}, "the output and gradients of input, weight and bias"


def test_masks_are_given_in_both_modes_and_not_to_later_steps(said: dict) -> None:
    places = [[0, [6, 3, 5], 0.5], [1, [6, 3, 8], 0.5], [2, [3, 8], 0.5]]
    assert said["model"]["places"] == {"eager": places, "graph": places}
    eager, graph = said["model"]["losses"].values()
    assert eager[0] == pytest.approx(graph[0], rel=1e-6)
    assert len(set(graph)) == 3, "later steps from the same weights drop at random"
    assert "compiles by itself" in said["model"]["refusal"]


def test_in_fp64_gradients_are_the_slope_of_the_loss_with_the_same_masks(said: dict) -> None:
    gradient, difference = said["model"]["slopes"]
    assert gradient == pytest.approx(difference, rel=1e-8), "fp32 anywhere would show"


def test_work_layers_and_settings_are_read_back(said: dict) -> None:
    model = said["model"]
    forward = 2 * 6 * 3 * 16 * (5 + 4) + 2 * 6 * 3 * 16 * (8 + 4) + 3 * 8 * 10
    assert model["work"] == 3 * forward, "backward costs twice as much"
    assert {"scan", "dot_general", "log"} < set(model["operations"]), "of the loop and of what it calls"
    assert model["layers"][:2] == ["input of embedding", "output of embedding"]
    assert model["layers"][-1] == "loss"
    assert {"output of layer2.back", "output of dense"} < set(model["layers"])
    assert (model["settings"]["compilations"], model["settings"]["changed_settings"]) == (1, "")


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
