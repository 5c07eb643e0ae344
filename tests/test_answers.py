"""Files that a worker writes: what is whole is read, what is broken raises; predictions are of the test samples."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from benchlib import metrics, workloads
from benchlib.worker import files


def archive(**arrays: np.ndarray) -> bytes:
    written = io.BytesIO()
    np.savez(written, **arrays)
    return written.getvalue()


def packed(**arrays: np.ndarray) -> bytes:
    written = io.BytesIO()
    files.pack(written, arrays)
    return written.getvalue()


def other(content: bytes, **members: np.ndarray) -> bytes:
    """What was packed, with other members in place of its own."""
    with np.load(io.BytesIO(content)) as own:
        return archive(**{**own, **members})


def flipped(content: bytes) -> bytes:
    """With one byte of the numbers changed."""
    at = content.index(np.float64(1.0).tobytes())
    return content[:at] + b"\x01" + content[at + 1 :]


ONES = packed(a=np.ones(3))


@pytest.mark.parametrize(
    "content",
    [
        b"hello",
        ONES[:50],
        flipped(ONES),
        archive(a=np.ones(3)),
        other(ONES, **{"float64": np.ones(2)}),
        other(ONES, index=np.ones(3, np.uint8)),
    ],
)
def test_broken_arrays_are_not_read(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "written").write_bytes(content)
    with pytest.raises((ValueError, KeyError, zipfile.BadZipFile)):  # a KeyError: no index
        files.unpack(tmp_path / "written")


def test_arrays_that_are_whole_are_read(tmp_path: Path) -> None:
    arrays = {"a": np.ones(3), "b": np.arange(6, dtype=np.int32).reshape(2, 3), "c": np.array(0.5), "d": np.zeros(1)}
    (tmp_path / "written").write_bytes(packed(**arrays))
    loaded = files.unpack(tmp_path / "written")
    assert list(loaded) == list(arrays)
    for name, array in arrays.items():
        assert loaded[name].dtype == array.dtype
        np.testing.assert_array_equal(loaded[name], array)


LABELS = {"test_labels": np.zeros(3, np.int32)}
WORDS = {"target_vocabulary": files.text(["un", "deux"]), "test_references": files.text(["un", "un deux"])}


@pytest.mark.parametrize(
    ("workload", "data", "predictions", "told"),
    [
        ("cnn", LABELS, np.zeros(3, np.int32), None),
        ("cnn", LABELS, np.zeros(2, np.int32), "predictions of shape (2,) for (3,) labels"),
        ("cnn", LABELS, np.zeros(3), "predictions of type float64, which are no classes or words"),
        ("seq2seq", WORDS, np.array([[4, 5], [3, 0]]), None),
        ("seq2seq", WORDS, np.array([4, 5]), "predictions of shape (2,) for 2 sentences"),
        ("seq2seq", WORDS, np.array([[4, 6], [3, 0]]), "predicted words from 0 to 6, of 6"),
    ],
)
def test_predictions_have_to_be_of_the_test_samples(workload, data, predictions, told) -> None:
    assert metrics.wrong(workloads.load(workload), predictions, data) == told
