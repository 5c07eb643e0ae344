"""What users download and unpack: archives, pickles and texts that are cut or hostile are refused by name."""

import gzip
import importlib
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from benchlib.data import archives, pickles, text
from benchlib.errors import BenchlibError

FUZZ = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.mark.parametrize("reader", ["imdb", "text", "prepared", "measurements", "downloads"])
def test_some_damaged_data_of_every_kind_are_read_or_refused_by_name(reader, tmp_path, monkeypatch):
    """A few of the cases of ``benchmarks/fuzz_data.py``, the same each time."""
    monkeypatch.syspath_prepend(FUZZ)
    fuzz = importlib.import_module("fuzz_data")
    for name in ("BENCHLIB_DATA", "NO_PROXY", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # so that it is as before, afterwards
    assert sum(fuzz.run(reader, 15, tmp_path).values()) >= 15
    assert reader in fuzz.READERS


class Evil:
    def __reduce__(self):
        return os.system, ("touch ran",)


def test_a_pickle_is_read_and_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for protocol in (2, 3, 4):
        assert pickles.load(pickle.dumps({"a": np.arange(3)}, protocol), "latin1")["a"].tolist() == [0, 1, 2]
        with pytest.raises(BenchlibError, match=r"asks for '\w+.system': it was refused, not run"):
            pickles.load(pickle.dumps({"a": Evil()}, protocol), "latin1")
    assert not Path("ran").exists()
    pickle.loads(pickle.dumps(Evil()))
    assert Path("ran").exists(), "Python's own loader runs it"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("words".encode("utf-16-le") * 9, "it has zero bytes"),
        ("é".encode("latin1"), "can't decode"),
        (gzip.compress(b"One sentence. Another one, which is longer.\n\n" * 50, mtime=0)[:-9], "ended"),
        (None, "directory"),
    ],
)
def test_a_text_that_cannot_be_read_is_named(tmp_path, monkeypatch, content: bytes | None, told: str):
    monkeypatch.setenv("BENCHLIB_DATA", str(tmp_path))
    path = tmp_path / "text" / "mine.txt"
    path.parent.mkdir()
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(BenchlibError, match=rf"mine\.txt: no text in UTF-8 can be read from it .*{told}"):
        text.load()


@pytest.mark.parametrize("name", ["text/a.txt", "text/a.txt.gz"])
def test_texts_have_an_end(tmp_path, monkeypatch, name: str):
    monkeypatch.setenv("BENCHLIB_DATA", str(tmp_path))
    monkeypatch.setattr(archives, "MOST_BYTES", 50)
    (tmp_path / "text").mkdir()
    (tmp_path / name).write_bytes(gzip.compress(b"b" * 60) if name.endswith(".gz") else b"b" * 60)
    with pytest.raises(BenchlibError, match=r"a\.txt.*: .*more than 50 bytes, the most that is read"):
        text.load()
