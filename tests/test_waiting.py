"""The timer's test of the frameworks that have environments of their own, where these are made: each session passes it
in every mode. One that forgets to wait fails it, where steps are queued: on the CPU TensorFlow's are done at once.
"""

from pathlib import Path

import pytest

from benchlib import environments, frameworks, plugins
from benchlib.condition import Condition
from benchlib.runner import timer_check
from benchlib.runner.processes import PATIENCE_S

QUEUED = [("jax", "graph"), ("mxnet", "graph"), ("mxnet", "eager")]
"""JAX in eager mode is not among them: operations as small as these are done at once."""

FORGETFUL = '''
from benchlib.frameworks.{framework} import Session as Waiting
PACKAGE = "{framework}"
DEVICES = ("cpu",)
MODES = ("graph", "eager")

class Session(Waiting):
    def synchronize(self):
        """Forgets to."""
'''

EVERY = [(name, mode) for name in ("jax", "tensorflow", "mxnet") for mode in frameworks.modes(name)]


@pytest.mark.parametrize(("framework", "mode"), EVERY)
def test_a_session_waits_for_all_that_is_timed(framework: str, mode: str, tmp_path: Path) -> None:
    if why := environments.why_absent(framework):
        pytest.skip(f"{framework} is tried in an environment of its own: {why}")
    found = timer_check.check(steps(framework, mode), tmp_path / "inputs", PATIENCE_S)
    assert found.ok, found


@pytest.fixture
def forgetful(framework: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a framework with a session that does not wait: a plug-in, as long as the test runs."""
    monkeypatch.setenv(plugins.VARIABLE, "")
    monkeypatch.setattr(plugins, "_used", [])
    for package in plugins.KINDS.values():
        monkeypatch.setattr(package, "__path__", list(package.__path__))
    name = f"{framework}_forgetful"
    for file, text in {
        f"frameworks/{name}.py": FORGETFUL.format(framework=framework),
        f"workloads/cnn/{name}.py": f"from benchlib.workloads.cnn.{framework} import build, loss, optimizer",
    }.items():
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(text, encoding="utf-8")
    plugins.use([tmp_path])
    return name


@pytest.mark.parametrize(("framework", "mode"), QUEUED)
def test_a_session_that_forgets_to_wait_fails_the_timers_test(framework, mode, forgetful, tmp_path) -> None:
    if why := environments.why_absent(framework):
        pytest.skip(f"{framework} is tried in an environment of its own: {why}")
    found = timer_check.check(steps(framework, mode).but(framework=forgetful), tmp_path / "inputs", PATIENCE_S)
    assert not found.ok
    assert not found.failure


def steps(framework: str, mode: str) -> Condition:
    """Small ones of a model."""
    sizes = {"batch_size": 32, "hyperparameters": {"image_size": 8}}
    return Condition(workload="cnn", framework=framework, environment=framework, mode=mode, **sizes)
