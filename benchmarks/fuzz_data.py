"""Is every damaged file of a user's data read, or refused by name?

    nice .venv/bin/python benchmarks/fuzz_data.py [--readers imdb text ...] [--seconds 600]

Each case is a small data set of made-up samples, in the layout of the real one, with something damaged: bytes, what is
packed in them, or the files themselves. Data that are known by a pinned hash have no part in it, for they are refused
before anything of them is read. Each case has to be read, or refused with an error that names the file and can be
printed, within 10 s of processor time and 3 GiB of memory; nothing is written. A reader runs in a process of its own,
so that a crash and a hang are seen; the case that goes wrong is made as small as can be, and shown.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import io
import logging
import multiprocessing
import os
import resource
import shutil
import signal
import socketserver
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from benchlib.cache import Block, Measurement, Store
from benchlib.condition import Condition
from benchlib.data import corpus, downloads, imdb, text
from benchlib.errors import BenchlibError
from benchlib.worker import files

MOST_SECONDS = 10.0  # of processor time, of a case
HANG_S = 60.0  # of a clock, after which a case is given up
MEMORY = 3 * 2**30  # of a process, with what its libraries take
CHUNK = 200  # cases of one process, or so

Contents = dict[str, "bytes | str"]
"""What lies in a folder, by path: bytes are a file, a text says what else."""

SPECIAL = ("folder", "dangling")
DIGITS = [b"9" * 20, b"9" * 5000, b"-1", b"0x10", b"1_0", "٣".encode(), b"nan", b"1e999"]
WORDS = [
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\n\n",
    b"\r",
    "\u2028".encode(),
    "春".encode(),
    b"../",
    b"\xed\xa0\x80",
]
PIECES = [
    *WORDS,
    *DIGITS,
    b"\x1f\x8b\x08\x10",
    b"PK\x03\x04",
]


@st.composite
def changed(draw: st.DrawFn, content: bytes) -> bytes:
    """Bytes with one to three places changed."""
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        start = draw(st.integers(0, len(content)))
        kind = draw(st.sampled_from(["cut", "flip", "insert", "replace", "remove", "repeat", "bytes", "empty"]))
        if kind == "cut":
            content = content[:start]
        elif kind == "flip" and start < len(content):
            content = content[:start] + bytes([content[start] ^ (1 << draw(st.integers(0, 7)))]) + content[start + 1 :]
        elif kind in ("insert", "replace"):
            piece = draw(st.sampled_from(PIECES))
            content = content[:start] + piece + content[start + (len(piece) if kind == "replace" else 0) :]
        elif kind == "remove":
            content = content[:start] + content[start + draw(st.sampled_from([1, 2, 8, 100, 512])) :]
        elif kind == "repeat":
            content = content[:start] + content[max(0, start - draw(st.sampled_from([1, 8, 100, 1000]))) :]
        elif kind == "bytes":
            content = content[:start] + draw(st.binary(max_size=30)) + content[start:]
        elif kind == "empty" and draw(st.integers(0, 9)) == 0:
            content = b""
    return content


@st.composite
def unpacked(draw: st.DrawFn, content: bytes) -> bytes:
    """A file in gzip, with something changed in it or in what it holds."""
    kind = draw(st.sampled_from(["inside", "outside", "both"]))
    content = content if kind == "outside" else draw(changed(content))
    packed = gzip.compress(content, 1, mtime=0)
    return packed if kind == "inside" else draw(changed(packed))


@st.composite
def folder(draw: st.DrawFn, contents: Contents, change: Callable[[bytes], st.SearchStrategy[bytes]]) -> Contents:
    """Some of the files changed: what is in them, or what they are."""
    contents = dict(contents)
    for name in draw(st.lists(st.sampled_from(sorted(contents)), min_size=1, max_size=3, unique=True)):
        if draw(st.integers(0, 6)):
            contents[name] = draw(change(contents[name]))
        else:
            contents[name] = draw(st.sampled_from([*SPECIAL, "nothing"]))
    return contents


def write(place: Path, contents: Contents) -> None:
    """Make the folder ``place`` anew, of these contents."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name, content in contents.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif content == "folder":
            path.mkdir()
        elif content == "dangling":
            path.symlink_to(place / "is not there")


# The readers: what a folder holds, how it is changed, and what reads it. What is read is given back, to be looked at.


class Reader:
    """One for each kind of data: :meth:`case` makes a folder's contents, :meth:`read` is what the product does."""

    def case(self, draw: st.DrawFn) -> Contents:
        raise NotImplementedError

    def read(self, place: Path) -> object:
        raise NotImplementedError

    def names(self, place: Path) -> tuple[str, ...]:
        """What a refusal has to name: one of these."""
        return (str(place),)


@contextlib.contextmanager
def replaced(module: object, **values: object) -> Iterator[None]:
    """These names of a module have these values."""
    before = {name: getattr(module, name) for name in values}
    for name, value in values.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


class Imdb(Reader):
    """Unpacked reviews."""

    def __init__(self) -> None:
        self._reviews = {
            f"aclImdb/{split}/{label}/{number}_{2 if label == 'neg' else 9}.txt": f"a {label} film, {number}".encode()
            for split in ("test", "train")
            for label in ("neg", "pos")
            for number in range(3)
        }

    def case(self, draw: st.DrawFn) -> Contents:
        reviews = draw(folder(self._reviews, changed))
        if draw(st.integers(0, 9)) == 0:
            reviews = {name: content for name, content in reviews.items() if not name.startswith("aclImdb/train/pos/")}
            reviews["aclImdb/train/pos"] = draw(st.sampled_from(SPECIAL))
        return reviews

    def read(self, place: Path) -> object:
        imdb._hash_of_texts.cache_clear()
        with replaced(imdb, PER_LABEL=3):
            imdb.identity()
            return imdb.load(50)


class Text(Reader):
    """A text of the user's own, plain or in gzip."""

    def __init__(self) -> None:
        documents = [f"Here is text {number}. It has {number} words, or so.\nAnother line." for number in range(12)]
        self._text = "\n\n".join(documents).encode()

    def case(self, draw: st.DrawFn) -> Contents:
        kind = draw(st.sampled_from(["file", "folder", "gz"]))
        if kind == "file":
            return draw(folder({"text.txt": self._text}, changed))
        if kind == "folder":
            return draw(folder({"text/a.txt": self._text, "text/b.txt": self._text}, changed))
        return draw(folder({"text/a.txt.gz": self._text, "text/b.txt.gz": self._text}, unpacked))

    def read(self, place: Path) -> object:
        text.require()
        text.identity()
        loaded = text.load()
        if len(loaded.documents) > 10_000 or sum(map(len, loaded.documents)) > 10_000:
            return None
        return corpus.arrays(loaded, 60, 16, 3, None)


class Prepared(Reader):
    """A folder of arrays that a run before has written."""

    def __init__(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            place = Path(name, "prepared")
            files.write(place, {"a": np.arange(50.0), "b": np.eye(3, dtype=np.float32)}, {"note": "", "source": "x"})
            self._files = {path.name: path.read_bytes() for path in place.iterdir()}

    def case(self, draw: st.DrawFn) -> Contents:
        return draw(folder(self._files, changed))

    def read(self, place: Path) -> object:
        files.digest(place)
        files.describe(place).get("note")
        return {name: array.sum() if array.dtype.kind in "iuf" else None for name, array in files.arrays(place).items()}


class Measurements(Reader):
    """A file of measurements: what is read is what was written."""

    def __init__(self) -> None:
        block = Block(round=0, position=0, steps=1, samples=2, started_s=0.0, wall_s=0.5, cpu_s=0.5)
        common = {"kind": "comparison", "group": "g", "file": "f", "repetition": 0, "seed": 0, "started_utc": "now"}
        self._written = [
            Measurement(**common, role=role, condition=Condition(workload="cnn"), blocks=[block] * 3)
            for role in ("baseline", "control", "condition")
        ]
        with tempfile.TemporaryDirectory() as name:
            store = Store(Path(name))
            store.save(self._written)
            self._content = store.path("f").read_bytes()
            self._table = pq.read_table(store.path("f"))

    def case(self, draw: st.DrawFn) -> Contents:
        if draw(st.booleans()):
            return draw(folder({"f.parquet": self._content}, changed))
        rows = self._table.to_pylist()
        row = draw(st.sampled_from(rows))
        column = draw(st.sampled_from(self._table.column_names))
        row[column] = draw(st.sampled_from([None, row[column]] + ([1, 3, 7, -1] if column == "format" else [])))
        kind = draw(st.sampled_from(["as it is", "without one", "one twice", "other order", "renamed"]))
        rows = {"without one": rows[1:], "one twice": [*rows, rows[0]], "other order": rows[::-1]}.get(kind, rows)
        schema = self._table.schema if draw(st.booleans()) else self._table.schema.remove_metadata()
        written = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, schema), written)
        return {"g.parquet" if kind == "renamed" else "f.parquet": written.getvalue()}

    def read(self, place: Path) -> object:
        store = Store(place)
        for path in place.iterdir():
            loaded = store.load(path.stem)
            if loaded is None:  # a link to what is not there
                continue
            assert loaded == self._written, "it is not what was written"
        return None


class Downloads(Reader):
    """What a server may answer instead of a file."""

    CONTENT = b"the file, and nothing else" * 10

    def __init__(self) -> None:
        self._answer = b""
        reader = self

        class Home(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError):
                    self.request.recv(65536)
                    self.request.sendall(reader._answer.replace(b"PORT", str(reader._port).encode()))

        socketserver.ThreadingTCPServer.allow_reuse_address = True
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Home)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        os.environ["NO_PROXY"] = "127.0.0.1"
        logging.getLogger("pooch").setLevel("ERROR")

    def case(self, draw: st.DrawFn) -> Contents:
        lines = {"Content-Length": str(len(self.CONTENT)), "Content-Type": "application/octet-stream"}
        status, body = "200 OK", self.CONTENT
        for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
            status = draw(
                st.sampled_from(["200 OK", "206 Partial", "302 Found", "404 No", "500 E", "204 None", "999 x"])
            )
            name = draw(st.sampled_from(["Content-Length", "Content-Encoding", "Transfer-Encoding", "Location", "X"]))
            there = [
                "http://127.0.0.1:PORT/again",
                "file:///etc/passwd",
                "http://[",
                "//",
                "http://.",
                "ftp://127.0.0.1/x",
            ]
            values = ["gzip", "deflate", "chunked", "br", "-1", "abc", "0", str(2**40), "x" * 70_000, "", *there]
            lines[name] = draw(st.sampled_from(values))
        if draw(st.booleans()):
            body = draw(changed(body))
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        answer = f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body
        return {"answer": draw(changed(answer)) if draw(st.integers(0, 2)) == 0 else answer}

    def read(self, place: Path) -> object:
        self._answer = (place / "answer").read_bytes()
        cache = place.parent / "cache"
        shutil.rmtree(cache, ignore_errors=True)
        os.environ["XDG_CACHE_HOME"] = str(cache)
        sha256 = hashlib.sha256(self.CONTENT).hexdigest()
        url = f"http://127.0.0.1:{self._port}/file.bin"
        try:
            with contextlib.redirect_stderr(io.StringIO()):  # of the progress
                path = downloads.download(url, f"sha256:{sha256}", "this", "digits")
            assert path.read_bytes() == self.CONTENT, "another file was taken for it"
            assert path.is_relative_to(cache)
        except BenchlibError:
            assert not [left for left in cache.rglob("*") if left.is_file()], "it left something in the cache"
            raise
        finally:
            shutil.rmtree(cache, ignore_errors=True)
        return None

    def names(self, place: Path) -> tuple[str, ...]:
        return (f"http://127.0.0.1:{self._port}/file.bin",)


READERS: dict[str, type[Reader]] = {
    "imdb": Imdb,
    "text": Text,
    "prepared": Prepared,
    "measurements": Measurements,
    "downloads": Downloads,
}


class Hang(BaseException):
    """A case takes too long."""


def judge(reader: Reader, contents: Contents, base: Path) -> str:
    """``read`` or ``refused``; an AssertionError says what was wrong with either."""
    place = base / "data"
    write(place, contents)
    os.environ[downloads.VARIABLE] = str(place)
    before = listing(base)
    started = time.process_time()
    message = None
    try:
        reader.read(place)
    except BenchlibError as error:
        message = str(error)
    took = time.process_time() - started
    assert took < MOST_SECONDS, f"{took:.1f} s of processor time"
    assert listing(base) == before, "something was written"
    if message is None:
        return "read"
    message.encode("utf-8")  # or it could not be printed
    assert any(name in message for name in reader.names(place)), f"no file in: {message}"
    assert "MemoryError" not in message, message[:500]
    assert len(message) < 1500, f"{len(message)} characters: {message[:400]}"
    assert message.isprintable(), f"cannot be shown: {message!r}"
    return "refused"


def listing(base: Path) -> dict[str, int]:
    """What lies in a folder, and how large it is."""
    return {str(path): path.lstat().st_size for path in base.rglob("*") if not path.is_dir()}


def run(name: str, cases: int, base: Path, number: int = 0, end: float | None = None) -> Counter[str]:
    """How many cases of a reader were read and refused; the first that goes wrong raises, in its smallest form. The
    cases are the same for the same ``number``. None is begun after ``end``, on the monotonic clock.
    """
    reader, count = READERS[name](), Counter()

    @seed(number)
    @settings(
        max_examples=cases,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def every_case_is_read_or_refused(data: st.DataObject) -> None:
        contents = data.draw(st.composite(lambda draw: reader.case(draw))())
        if end is not None and time.monotonic() > end:
            return
        count[judge(reader, contents, base)] += 1

    every_case_is_read_or_refused()
    return count


def _child(name: str, number: int, end: float, base: Path, results: Any) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _hang)
    signal.setitimer(signal.ITIMER_REAL, HANG_S + CHUNK * 2)
    try:
        results.put(dict(run(name, CHUNK, base, number, end)))
    except BaseException as error:  # the contents of a case are long, and are kept in the folder
        results.put("; ".join(f"{type(one).__name__}: {one}"[:500] for one in _leaves(error)))


def _leaves(error: BaseException) -> list[BaseException]:
    """What is wrong, each by itself: hypothesis tells of several together."""
    return [leaf for one in getattr(error, "exceptions", ()) for leaf in _leaves(one)] or [error]


def _hang(*_: object) -> None:
    raise Hang


def fuzz(name: str, seconds: float, first: int) -> tuple[Counter[str], str]:
    """How many cases a reader did in these seconds, in processes one after another, and what went wrong."""
    count, number, end = Counter(), first, time.monotonic() + seconds
    context = multiprocessing.get_context("fork")
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory(prefix="benchlib-fuzz-") as base:
            results = context.SimpleQueue()
            child = context.Process(target=_child, args=(name, number, end, Path(base), results))
            child.start()
            child.join(HANG_S + CHUNK * 2 + 60)
            if child.is_alive():
                child.kill()
                child.join()
            told = f"exit code {child.exitcode}" if child.exitcode else results.get()
            if isinstance(told, str):
                kept = Path(tempfile.mkdtemp(prefix=f"benchlib-fuzz-{name}-"))
                with contextlib.suppress(OSError, shutil.Error):
                    shutil.copytree(base, kept, symlinks=True, dirs_exist_ok=True)
                return count, f"seed {number}: {told}; its last case is in {kept}"
            count.update(told)
        number += 1
    return count, ""


def main() -> None:
    """A line for each reader; the exit code is 1 if something went wrong."""
    parser = argparse.ArgumentParser(description="Damaged data, each read, or refused by name.")
    parser.add_argument("--readers", nargs="+", choices=READERS, default=list(READERS))
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    failed = False
    for name in asked.readers:
        count, wrong = fuzz(name, asked.seconds, asked.seed)
        numbers = ", ".join(f"{number:,} {word}" for word, number in sorted(count.items()))
        print(
            f"{name}: {sum(count.values()):,} cases in {asked.seconds:.0f} s: {numbers}; {wrong or 'nothing wrong'}",
            flush=True,
        )
        failed |= bool(wrong)
    sys.exit(failed)


if __name__ == "__main__":
    main()
