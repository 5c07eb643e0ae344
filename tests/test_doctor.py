"""The conformance test passes a session that keeps its promises, and finds the promise that another one breaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchlib import doctor, workloads
from benchlib.errors import BenchlibError

pytestmark = pytest.mark.usefixtures("toy_framework")

RESET = "load forgets all that steps have left: the optimizer's state, running statistics"
WAITS = "synchronize waits for all work"
SAME_MODEL = "toy is the reference's model"


def broken(framework: str, inputs: Path) -> dict[str, str]:
    """What a framework does not keep, and why."""
    return {row.what: row.why for row in doctor.check(framework, inputs, 60.0) if row.why}


def test_a_session_that_keeps_its_promises_passes(tmp_path: Path) -> None:
    rows = doctor.check("toy", tmp_path, 60.0)
    assert [row for row in rows if row.why] == []
    assert {row.mode for row in rows} == {"eager"}
    assert {RESET, WAITS, SAME_MODEL} < {row.what for row in rows}
    assert len({row.what for row in rows}) == len(rows) == 11


def test_a_session_that_does_not_wait_is_found(tmp_path: Path) -> None:
    assert broken("toy_queued", tmp_path).keys() == {SAME_MODEL}, "it says no loss, and keeps all else"
    rows = broken("toy_forgetful", tmp_path)
    assert rows.keys() == {WAITS, SAME_MODEL}
    assert rows[WAITS].startswith("a timer that stops after synchronize() saw ")


def test_a_session_that_keeps_the_optimizer_s_state_is_found(tmp_path: Path) -> None:
    rows = broken("toy_keeps", tmp_path)
    assert RESET in rows
    assert rows.keys() <= {RESET, SAME_MODEL}, "with momentum it is another model, too"
    assert "give another" in rows[RESET]


def test_another_model_is_found(tmp_path: Path) -> None:
    rows = broken("twin", tmp_path)
    assert rows.keys() == {SAME_MODEL}
    assert "outputs: 1/outputs:0 differs by 9.9e-03" in rows[SAME_MODEL], "a hundredth of all but the bias"


def test_a_session_that_takes_any_weights_is_found(tmp_path: Path) -> None:
    rows = broken("toy_careless", tmp_path)
    assert rows.keys() == {
        "a weight that the model does not have is refused",
        "a weight of another shape is refused",
    }


def test_a_session_without_the_methods_of_the_gate_is_told_what_it_needs(tmp_path: Path) -> None:
    told = broken("toy_bare", tmp_path)
    (why,) = (why for what, why in told.items() if what.startswith("update takes the optimizer's steps"))
    assert "benchlib.frameworks.toy_bare: its Session has no method 'update'" in why


def test_a_framework_without_a_workload_is_told_what_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads.Workload, "frameworks", lambda self: [])
    with pytest.raises(BenchlibError, match=r"framework 'toy': no workload .* write workloads/NAME/toy.py"):
        doctor.check("toy", tmp_path)
