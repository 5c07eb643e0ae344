"""What a worker answers and writes: what does not fit is told by its key, what fits passes."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
import pytest

from benchlib import metrics, workloads
from benchlib.measure import answers
from benchlib.worker import files
from benchlib.worker import packed as packing

BLOCK = {"started_s": 1.0, "wall_s": 0.1, "cpu_s": 0, "steps": 2, "samples": 64}
HASHES = dict.fromkeys(("weights_sha256", "weights_file_sha256", "data_sha256", "order_sha256"), "ab")
RIGHT = [
    ("open", {"versions": {"torch": "2"}, "rss_mib": 100.5}),
    ("build", {"parameters": 10, **HASHES}),
    ("first_step", {"wall_s": math.nan, "settings": {"threads": 2}}),
    ("warm_up", {"times": [0.1, 1], "steps": 2, "seconds": 1.1, "verdict": "steady", "chunks": [[0.1, 0.0], [1, 2.0]]}),
    ("block", BLOCK),
    ("block", {**BLOCK, "device_s": 0.05}),
    ("reset", {}),
    ("epoch", {"loss": math.inf, "order_sha256": "ab"}),
    ("predict", {}),
    ("check", {}),
    ("planted", {"known_s": [0.2, -0.1], "timed_s": [0.2, 0.1]}),
    ("memory", {"peak": 1.0, "steady": 1.0, "private": 1.0, "device_peak": 5}),
]


@pytest.mark.parametrize(("do", "answer"), RIGHT)
def test_what_workers_answer_passes_and_without_a_key_or_with_one_more_it_does_not(do: str, answer: dict) -> None:
    assert answers.wrong(do, answer) is None
    for key in [key for key in answer if not key.startswith("device_")]:
        assert answers.wrong(do, {name: value for name, value in answer.items() if name != key}).startswith(key)
        assert answers.wrong(do, {**answer, key: None}).startswith(key)
        assert answers.wrong(do, {**answer, key: [{}]}).startswith(key)
    assert answers.wrong(do, {**answer, "more": "x"}).startswith("more: ")


@pytest.mark.parametrize(
    ("do", "answer", "said"),
    [
        ("warm_up", {"times": [], "steps": 0, "seconds": 1, "verdict": "steady"}, "times: List should have at least 1"),
        ("warm_up", {"times": [1.0, 0.0], "steps": 2, "seconds": 1, "verdict": "steady"}, "times.1: Input should be"),
        ("warm_up", {"times": [1.0], "steps": 1, "seconds": 0.0, "verdict": "steady"}, "seconds: Input should be gr"),
        ("warm_up", {"times": [1.0], "steps": 1, "seconds": math.inf, "verdict": "steady"}, "seconds: Input should be"),
        ("warm_up", {"times": [1.0], "steps": 2, "seconds": 1, "verdict": "fine"}, "verdict: Input should be 'steady'"),
        ("block", {**BLOCK, "steps": 2.5}, "steps: "),
        ("block", {**BLOCK, "steps": 2**63}, "steps: "),
        ("block", {**BLOCK, "wall_s": "0.1"}, "wall_s: Input should be a valid number ('0.1')"),
        ("block", {**BLOCK, "wall_s": 10**400}, "wall_s: "),
        ("epoch", {"block": {**BLOCK, "cpu_s": None}}, "block.cpu_s: "),
        ("memory", {"peak": 1.0, "steady": 1.0, "private": 1.0, "device_peak": "5"}, "device_peak: "),
        ("open", {"versions": {"torch": 2}, "rss_mib": 1.0}, "versions.torch: "),
    ],
)
def test_what_is_wrong_is_told_by_its_key(do: str, answer: dict, said: str) -> None:
    assert answers.wrong(do, answer).startswith(said)


def test_the_blocks_of_an_epoch_come_before_its_answer_and_of_nothing_else() -> None:
    assert answers.wrong("epoch", {"block": BLOCK}) is None
    assert answers.wrong("check", {"block": BLOCK}).startswith("block: Extra inputs are not permitted")


def test_an_answer_is_not_repeated_at_length() -> None:
    assert len(answers.wrong("memory", {"peak": "x" * 10**6, "steady": 1.0, "private": 1.0})) < 300


def archive(**arrays: np.ndarray) -> bytes:
    written = io.BytesIO()
    np.savez(written, **arrays)
    return written.getvalue()


def packed(**arrays: np.ndarray) -> bytes:
    written = io.BytesIO()
    packing.write(written, arrays)
    return written.getvalue()


def other(content: bytes, **members: np.ndarray) -> bytes:
    """What was packed, with other members in place of its own."""
    with np.load(io.BytesIO(content)) as own:
        return archive(**{**own, **members})


def saved(array: np.ndarray) -> bytes:
    written = io.BytesIO()
    np.save(written, array)
    return written.getvalue()


def flipped(content: bytes) -> bytes:
    """With one byte of the numbers changed."""
    at = content.index(np.float64(1.0).tobytes())
    return content[:at] + b"\x01" + content[at + 1 :]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "cannot be read: EOFError"),
        (b"hello", "cannot be read: ValueError"),
        (packed(a=np.ones(3))[:50], "cannot be read: BadZipFile"),
        (flipped(packed(a=np.ones(3))), "cannot be read: BadZipFile"),
        (saved(np.ones(3)), "cannot be read: ValueError: it is one array, and no archive"),
        (archive(a=np.ones(3)), "cannot be read: KeyError: 'index'"),
        (
            other(packed(a=np.ones(3)), **{"of float64": np.ones(2)}),
            "a: 2 numbers of float64 are left, of 3 of float64",
        ),
        (other(packed(a=np.ones(3)), **{"of float64": np.ones(4)}), "more numbers of float64 than the arrays have"),
        (other(packed(a=np.ones(3)), **{"of float64": np.ones(3, int)}), "a: 3 numbers of int64 are left"),
        (other(packed(a=np.ones(3)), index=np.ones(3, np.uint8)), "cannot be read: JSONDecodeError"),
        (packed(a=np.array(["text"])), r"a in written has no numbers: <U4 of shape \(1,\)"),
        (packed(a=np.empty(0)), "a in written has no numbers: float64"),
    ],
)
def test_a_broken_archive_is_told_by_its_name(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "written"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=said):
        answers.arrays(file)
    with pytest.raises(ValueError, match="gone cannot be read: FileNotFoundError"):
        answers.arrays(tmp_path / "gone")


@pytest.mark.parametrize(
    ("content", "said"),
    [(saved(np.ones(9))[:-1], "cannot be read: ValueError"), (archive(a=np.ones(3)), "is an archive, and no array")],
)
def test_a_broken_array_is_told_by_its_name(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "written"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=said):
        answers.array(file)


def test_files_that_are_whole_are_read(tmp_path: Path) -> None:
    file = tmp_path / "written"
    arrays = {"a": np.ones(3), "b": np.arange(6, dtype=np.int32).reshape(2, 3), "c": np.array(0.5), "d": np.zeros(1)}
    file.write_bytes(packed(**arrays))
    loaded = answers.arrays(file)
    assert list(loaded) == list(arrays)
    for name, array in arrays.items():
        assert loaded[name].dtype == array.dtype
        np.testing.assert_array_equal(loaded[name], array)
    file.write_bytes(saved(np.arange(3)))
    assert answers.array(file).tolist() == [0, 1, 2]


def test_predictions_have_to_be_of_the_test_samples() -> None:
    labels = {"test_labels": np.zeros(3, np.int32)}
    assert metrics.wrong(workloads.load("cnn"), np.zeros(3, np.int32), labels) is None
    assert (
        metrics.wrong(workloads.load("cnn"), np.zeros(2, np.int32), labels)
        == "predictions of shape (2,) for (3,) labels"
    )
    assert "no classes" in metrics.wrong(workloads.load("cnn"), np.zeros(3), labels)
    text = {"target_vocabulary": files.text(["un", "deux"]), "test_references": files.text(["un", "un deux"])}
    assert metrics.wrong(workloads.load("seq2seq"), np.array([[4, 5], [3, 0]]), text) is None
    assert "for 2 sentences" in metrics.wrong(workloads.load("seq2seq"), np.array([4, 5]), text)
    assert (
        metrics.wrong(workloads.load("seq2seq"), np.array([[4, 6], [3, 0]]), text)
        == "predicted words from 0 to 6, of 6"
    )
