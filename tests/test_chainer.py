"""Chainer: what its session has to do otherwise than others', in the environments that are there."""

import functools
import json
import os
import subprocess
from pathlib import Path

import pytest

from benchlib import environments

HERE = Path(__file__).resolve().parent
each = pytest.mark.parametrize("name", ["chainer", "chainer-ideep"])


@functools.cache
def facts(name: str) -> dict:
    """What ``chainer_session.py`` prints in an environment."""
    if why := environments.why_absent(name):
        pytest.skip(f"Chainer's session is not tried: {why}")
    command = [environments.find(name).python, str(HERE / "chainer_session.py")]
    variables = {**os.environ, "PYTHONPATH": str(HERE.parent), "CHAINER_USE_IDEEP": "auto"}
    ended = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-4000:]
    return json.loads(ended.stdout)


@each
def test_given_masks_are_those_of_the_way_back_too(name):
    masks = facts(name)["masks"]
    assert masks["taken"] == 3 * [[0, 16, 50, 4, 4, 0.25], [1, 16, 100, 2, 2, 0.25], [2, 16, 512, 0.5]]
    assert masks["slopes"][0] == pytest.approx(masks["slopes"][1], rel=1e-5)
    assert masks["without"][0] != masks["without"][1]


@each
def test_layers_and_their_work_are_seen(name):
    model = facts(name)["model"]
    embedding = ["input of embedding (8, 4)", "output of embedding (8, 4, 5)"]
    gru = ["input of gru (8, 4, 5)", "output of gru (4, 6)"]
    assert model["layers"] == [*embedding, *gru, "input of dense (4, 6)", "output of dense (4, 10)", "loss ()"]
    without = 4 * 3 * 6 * 6  # nothing goes back to the first state, which is 0
    assert model["multiply_adds"] == 3 * 4 * (8 * 3 * 6 * (5 + 6) + 6 * 10) - without


@each
def test_an_update_of_some_weights_leaves_the_others(name):
    assert facts(name)["moved"] == ["dense2.bias"]
