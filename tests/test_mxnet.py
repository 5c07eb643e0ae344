"""MXNet: what its session has to do otherwise than others', in its environments, where these are there."""

import functools
import itertools
import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from benchlib import environments, frameworks, workloads
from benchlib.errors import BenchlibError
from benchlib.provenance import needs
from benchlib.runner import availability

HERE = Path(__file__).resolve().parent
LEFT_OUT = {"bert", "gcn"}
"""Workloads that it has no file for: docs/mxnet.md says why."""


def python(environment: str) -> str:
    """The interpreter of an environment that has MXNet."""
    try:
        return environments.find(environment).python
    except BenchlibError as error:
        pytest.skip(f"MXNet's session is tried in the environment {environment}, which is not there: {error}")


@functools.cache
def facts(environment: str, mode: str) -> dict:
    """What ``mxnet_session.py`` wrote."""
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run(
            [python(environment), str(HERE / "mxnet_session.py"), mode, "facts.json"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(HERE.parent), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
        assert ended.returncode == 0, ended.stderr[-4000:]
        return json.loads(Path(folder, "facts.json").read_text())


each_mode = pytest.mark.parametrize(
    ("environment", "mode"), [*itertools.product(("mxnet", "mxnet-1.6"), frameworks.modes("mxnet"))]
)


# -- without MXNet


def test_it_has_a_file_for_every_workload_but_those_that_are_named():
    missing = {name for name in workloads.names() if "mxnet" not in workloads.load(name).frameworks()}
    assert missing == LEFT_OUT
    said = (HERE.parent / "docs" / "mxnet.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in said for name in missing)


def test_its_environments_pin_a_numpy_that_it_can_be_imported_with():
    for name in ("mxnet", "mxnet-cuda"):
        text = (HERE.parent / "environments" / f"{name}.txt").read_text(encoding="utf-8")
        (pin,) = [line for line in text.splitlines() if line.startswith("numpy==")]
        assert tuple(map(int, pin[len("numpy==") :].split(".")))[:2] < (1, 24), "np.bool is gone from 1.24 on"
        assert ("Never run" in text) == (name == "mxnet-cuda")


def test_the_build_for_the_cpu_is_told_what_a_gpu_needs():
    first = needs.Need(**frameworks.needs("mxnet")[0])
    assert set(first.distributions) < set(frameworks.distributions("mxnet"))
    assert "mxnet" not in first.distributions


# -- in its environment


@each_mode
def test_the_running_variance_is_pytorch_s_wherever_it_is_seen(environment, mode):
    apart = facts(environment, mode)["running variance"]
    for what in ("mean", "variance", "evaluation"):
        assert apart[what] < 1e-5 < apart["of the batch, beside it"], what


@each_mode
def test_statistics_are_taken_on_the_way_back(environment, mode):
    """So that of a forward pass alone nothing may be turned into PyTorch's; the gate calls it different."""
    assert facts(environment, mode)["statistics moved forward"] == []


@each_mode
def test_adam_adds_epsilon_after_the_bias_is_corrected(environment, mode):
    apart = facts(environment, mode)["adam"]
    assert apart["ours"] < 1e-6
    assert apart["MXNet's"] > 1e-3, "MXNet's own would do: ours is to go"


@each_mode
def test_an_update_of_some_weights_leaves_the_others(environment, mode):
    assert facts(environment, mode)["moved"] == ["dense.bias"]


@each_mode
def test_an_update_of_some_weights_is_clipped_by_itself(environment, mode):
    alone, after_others = facts(environment, mode)["clipped alone"]
    assert alone == pytest.approx(-0.01 * 3e-4 / (3e-4 + 1e-3), rel=1e-2)
    assert after_others == pytest.approx(alone, rel=1e-3)


@each_mode
def test_steps_may_queue_and_each_keeps_its_loss(environment, mode):
    losses = facts(environment, mode)["steps"]
    assert losses["queued"] == pytest.approx(losses["one by one"], rel=1e-6)
    assert len(set(losses["queued"])) == len(losses["queued"])


@each_mode
def test_dropout_is_seen_and_is_at_work_in_steps(environment, mode):
    seen = facts(environment, mode)["dropouts"]
    assert seen["shares"] == pytest.approx([0.25, 0.25, 0.5], abs=0.05)
    assert seen["changed in evaluation"] == [False] * 3
    assert len(set(seen["losses"])) == 3


@each_mode
def test_given_masks_are_those_of_the_way_back_too(environment, mode):
    given = facts(environment, mode)["given masks"]
    assert given["taken"] == [[0, 16, 50, 4, 4, 0.25], [1, 16, 100, 2, 2, 0.25], [2, 16, 512, 0.5]]
    more, less, here, again = given["losses"]
    assert given["passes"] == 5
    assert here == again
    assert given["gradient"] == pytest.approx((more - less) / 2e-8, rel=1e-5)
    assert here not in given["without"]
    assert given["without"][0] != given["without"][1]
    assert given["settings"].get("compilations") == {"graph": 1}.get(mode)
    assert not given["settings"]["hybridized"]


@each_mode
def test_layers_and_their_work_are_seen(environment, mode):
    seen = facts(environment, mode)["layers"]
    embedding = ["input of embedding (8, 4)", "output of embedding (8, 4, 5)"]
    gru = ["input of gru (8, 4, 5)", "output of gru (8, 4, 6)"]
    assert seen["shapes"] == [*embedding, *gru, "input of dense (4, 6)", "output of dense (4, 10)", "loss ()"]
    assert seen["multiply_adds"] == 3 * 4 * (8 * 3 * 6 * (5 + 6) + 6 * 10)


@each_mode
def test_gradients_in_evaluation_are_those_of_what_was_computed(environment, mode):
    """Of MXNet's own, behind a pooling, they are of whatever lay in memory."""
    along = facts(environment, mode)["evaluated gradient"]
    assert along["gradient"] == pytest.approx(along["difference"], rel=0.05)


@each_mode
def test_threads_are_read_back(environment, mode):
    assert facts(environment, mode)["settings"]["omp_threads"] == 1
    assert facts(environment, mode)["settings"]["threads"] > 1


def test_it_can_use_the_cpu_here():
    python("mxnet")
    assert availability.why_absent("mxnet", "cpu", "mxnet") is None
