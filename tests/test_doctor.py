"""The conformance test passes a session that keeps its promises, and finds the promise that another one breaks."""

from pathlib import Path

import pytest

from benchlib import doctor, workloads
from benchlib.errors import BenchlibError

pytestmark = pytest.mark.usefixtures("toy_framework")

WAITS = "synchronize waits for all work"
SAME_MODEL = "toy is the reference's model"


def broken(framework: str, inputs: Path) -> dict[str, str]:
    """What a framework does not keep, and why."""
    return {row.what: row.why for row in doctor.check(framework, inputs, 60.0) if row.why}


def test_a_session_that_keeps_its_promises_passes(tmp_path: Path) -> None:
    rows = list(doctor.check("toy", tmp_path, 60.0))
    assert [row for row in rows if row.why] == []
    assert {row.mode for row in rows} == {"eager"}
    assert {WAITS, SAME_MODEL} < {row.what for row in rows}


@pytest.mark.slow
def test_a_session_that_does_not_wait_is_found(tmp_path: Path) -> None:
    assert broken("toy_queued", tmp_path).keys() == {SAME_MODEL}, "it says no loss, and keeps all else"
    assert broken("toy_forgetful", tmp_path).keys() == {WAITS, SAME_MODEL}


@pytest.mark.parametrize(
    ("framework", "why"),
    [
        ("toy_keeps", ""),  # the optimizer's state stays where weights are loaded
        ("twin", "outputs: 1/outputs:0 differs by 9.9e-03"),  # a hundredth of all but the bias
        ("toy_bare", "benchlib.frameworks.toy_bare: its Session has no method"),
    ],
)
def test_another_model_is_found(tmp_path: Path, framework: str, why: str) -> None:
    rows = broken(framework, tmp_path)
    assert rows.keys() == {SAME_MODEL}
    assert why in rows[SAME_MODEL]


def test_a_mode_that_a_version_lacks_breaks_no_promise(tmp_path: Path) -> None:
    (only,) = doctor.check("toy_old", tmp_path, 60.0)
    assert (only.refused, only.why) == (True, "mode 'eager': not in this version: toy 0.1 has none")


def test_a_framework_without_a_workload_is_told_what_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads.Workload, "frameworks", lambda self: [])
    with pytest.raises(BenchlibError, match=r"framework 'toy': no workload .* write workloads/NAME/toy.py"):
        list(doctor.check("toy", tmp_path))
