"""Is every file that a user downloaded or unpacked read, or refused by name, whatever is in it?

    nice .venv/bin/python benchmarks/fuzz_data.py [--readers imdb text ...] [--seconds 600]

Each case is a small data set of made-up samples, in the layout of the real one, with something changed: bytes, what is
packed in them, the headers of archives (with the right checksums), a pickle's operations, or the files themselves
(folders, links, pipes). The hashes by which a real file is known are those of the changed one: this is about what lies
behind them. Each case has to be read, or refused with an error that names the file and can be printed, within 10 s of
processor time and 3 GiB of memory; nothing is written, and nothing outside the folder is read. A reader runs in a
process of its own, so that a crash and a hang are seen; the case that goes wrong is made as small as can be, and shown.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import gzip
import hashlib
import io
import json
import logging
import multiprocessing
import os
import pickle
import resource
import shutil
import signal
import socketserver
import struct
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from benchlib.condition import Condition
from benchlib.data import cifar10, cora, corpus, downloads, graphs, imdb, multi30k, text, translations
from benchlib.errors import BenchlibError
from benchlib.store import Block, Measurement, Store
from benchlib.worker import files

MOST_SECONDS = 10.0  # of processor time, of a case
HANG_S = 60.0  # of a clock, after which a case is given up
MEMORY = 3 * 2**30  # of a process, with what its libraries take
CHUNK = 200  # cases of one process, or so
SECRET = "elsewhere-there-is-this"
"""In a file outside the folder: no reader may know it."""

Contents = dict[str, "bytes | str"]
"""What lies in a folder, by path: bytes are a file, a text says what else."""

SPECIAL = ("folder", "pipe", "link", "dangling", "device")
NUMBERS = [0, 1, 2, 7, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1]
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
NESTED = [b"]q\xfa(K\x01K\x01e" + b"q\xfb](h\xfbh\xfbe" * 40, b")q\xfa" + b"h\xfah\xfa\x86q\xfa" * 60]
OPERATIONS = [
    *NESTED,
    *(bytes([code]) for code in range(40, 128)),
    *(b"r" + struct.pack("<I", number) for number in (0, 2**31 - 1, 2**32 - 1)),
    *(
        code + struct.pack("<q", number)
        for code in (b"\x8e", b"\x8d", b"\x95", b"\x96")
        for number in (2**31, 2**62, -1)
    ),
    *(b"T" + struct.pack("<i", number) for number in (-1, 2**31 - 1)),
    *(f"c{module}\n{name}\n".encode() for module, name in [("os", "system"), ("numpy", "dtype"), ("numpy", "ndarray")]),
    *(f"c{module}\n{name}\n".encode() for module, name in [("numpy.core.multiarray", "_reconstruct"), ("x", "é\n")]),
    *(f"c{module}\n{name}\n".encode() for module, name in [("scipy.sparse.csr", "csr_matrix"), ("numpy", "memmap")]),
    *(f"c{module}\n{name}\n".encode() for module, name in [("collections", "defaultdict"), ("__builtin__", "list")]),
    *(b"U" + bytes([len(word)]) + word for word in (b"O8", b"V8", b"u1", b">i4", b"f8,O", b"M8[s]", b"U9", b"indptr")),
    *(b"K\x01K\x02\x86", b"(t", b"}", b"]", b"N", b"K\xffK\xff\x86", b"M\xff\xffM\xff\xff\x86"),
]
PIECES = [
    *WORDS,
    *DIGITS,
    *OPERATIONS,
    *(struct.pack("<I", n % 2**32) for n in NUMBERS),
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
    kind = draw(st.sampled_from([*["inside", "outside", "both"] * 8, "bomb"]))
    if kind == "bomb":
        return gzip.compress(b"a\n" * 2**19, 1) * draw(st.sampled_from([1, 2, 4, 1100]))  # up to 1.1 GiB
    content = content if kind == "outside" else draw(changed(content))
    packed = gzip.compress(content, 1, mtime=0)
    return packed if kind == "inside" else draw(changed(packed))


NAMES = ["../climbed", "/climbed", "a/../../climbed", "", ".", "aclImdb/train/pos/٣_7.txt", "\udcff", "a\nb", "n" * 90]
NAMES += ["aclImdb/train/pos/" + "9" * 60 + "_7.txt", "aclImdb/train/pos/0_7.txt/", "cifar-10-batches-py/data_batch_1"]
RECORDS = [b"size=%d" % number for number in NUMBERS] + [b"size=-5", b"path=../../climbed", b"path=/x", b"path=\xff"]
RECORDS += [b"GNU.sparse.major=1\n0 GNU.sparse.minor=0", b"GNU.sparse.map=0,1,2", b"GNU.sparse.map=x", b"path="]
RECORDS += [b"GNU.sparse.size=99999999999999", b"GNU.sparse.realsize=5", b"hdrcharset=BINARY", b"1" * 900, b"mtime=nan"]


def header(name: str, size: int, kind: bytes = b"0", link: str = "", holes: bytes = b"") -> bytes:
    """A block that begins a member, with its checksum; a size that octal digits have no room for as GNU writes it."""
    told = b"%011o\0" % size if 0 <= size < 8**11 else b"\x80" + (size % 2**88).to_bytes(11, "big")
    told = told if size >= 0 else b"\xff" + told[1:]
    block = (
        name.encode("utf-8", "surrogateescape")[:100].ljust(100, b"\0") + b"0000644\0" * 3 + told + b"0" * 11 + b"\0"
    )
    block += b" " * 8 + kind[:1] + link.encode()[:100].ljust(100, b"\0") + b"ustar\x0000" + b"\0" * 80
    block = (block + b"\0" * (386 - len(block)) + holes).ljust(512, b"\0")[:512]
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


@st.composite
def archive(draw: st.DrawFn, members: dict[str, bytes]) -> bytes:
    """A ``.tar.gz`` of these files, with members, headers or bytes changed."""
    blocks = []
    hostile = draw(st.sampled_from([0, 1, 1, 2]))
    at = {draw(st.integers(0, len(members) - 1)) for _ in range(hostile)}
    for number, (name, content) in enumerate(members.items()):
        size, kind, link, before, holes = len(content), b"0", "", b"", b""
        if number in at:
            what = draw(st.sampled_from(["name", "size", "kind", "pax", "content", "content", "many", "holes"]))
            if what == "name":
                name = draw(st.sampled_from(NAMES))
            elif what == "size":
                size = draw(st.sampled_from([*NUMBERS, -1, -512, -(2**62)]))
            elif what == "kind":
                kind = draw(
                    st.sampled_from([b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"S", b"L", b"K", b"x", b"g", b"X"])
                )
                link = draw(st.sampled_from(["", "../outside/secret", name, "/dev/zero"]))
            elif what == "pax":
                record = draw(st.sampled_from(RECORDS)) * draw(st.sampled_from([1, 1, 50]))
                record = b"%d %b\n" % (len(record) + 4, record)
                before = header("pax", len(record), draw(st.sampled_from([b"x", b"g"]))) + padded(record)
                before *= draw(st.sampled_from([1, 1, 2, 2000]))
            elif what == "content":
                content = draw(changed(content))
                size = len(content)
            elif what == "many":
                before = header("folder", 0, b"5") * draw(st.sampled_from([10, 1000]))
            else:
                kind, holes = b"S", b"".join(b"%011o\0" % draw(st.sampled_from(NUMBERS[:9])) for _ in range(8))
                holes += draw(st.sampled_from([b"\0", b"\1"])) + b"%011o\0" % draw(st.sampled_from(NUMBERS[:9]))
        blocks.append(before + header(name, size, kind, link, holes) + padded(content))
    whole = b"".join(blocks) + b"\0" * 1024
    if draw(st.integers(0, 3)) == 0:
        whole = draw(changed(whole))
    packed = gzip.compress(whole, 1, mtime=0)
    return draw(changed(packed)) if draw(st.integers(0, 4)) == 0 else packed


def padded(content: bytes) -> bytes:
    """Up to the next whole block."""
    return content + b"\0" * (-len(content) % 512)


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
    """Make the folder ``place`` anew, of these contents; what leads out of it leads to ``outside``, beside it."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name, content in contents.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif content == "folder":
            path.mkdir()
        elif content == "pipe":
            os.mkfifo(path)
        elif content == "link":
            path.symlink_to(place.parent / "outside" / "secret")
        elif content == "dangling":
            path.symlink_to(place / "is not there")
        elif content == "device":
            path.symlink_to("/dev/zero")


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


def hashes(place: Path, names: Any, algorithm: str) -> dict[str, str]:
    """Of the files that are there; a file that is none, or is missing, has one that no file has."""
    found = {}
    for name in names:
        path = place / name
        whole = path.is_file() and not path.is_symlink()
        found[name] = hashlib.new(algorithm, path.read_bytes()).hexdigest() if whole else "none"
    return found


class Cifar10(Reader):
    """The archive, or its batches, original or not."""

    def __init__(self) -> None:
        self._batches = {}
        for number, name in enumerate(cifar10.BATCHES_MD5):
            pixels = np.random.default_rng(number).integers(0, 256, (10, 3072), dtype=np.uint8)
            batch = {b"data": pixels, b"labels": [*range(10)], b"filenames": [b"%d.png" % n for n in range(10)]}
            self._batches[f"{cifar10.FOLDER}/{name}"] = pickle.dumps(batch, protocol=2 + number % 3)

    def case(self, draw: st.DrawFn) -> Contents:
        if draw(st.booleans()):
            return {cifar10.ARCHIVE: draw(archive(self._batches))}
        return draw(folder(self._batches, changed)) | ({"original": b""} if draw(st.booleans()) else {})

    def read(self, place: Path) -> object:
        packed = place / cifar10.ARCHIVE
        md5 = hashlib.md5(packed.read_bytes()).hexdigest() if packed.is_file() else "none"
        known = cifar10.BATCHES_MD5
        if (place / "original").exists():
            known = hashes(place / cifar10.FOLDER, known, "md5")
        with replaced(cifar10, PER_BATCH=10, ARCHIVE_MD5=md5, BATCHES_MD5=known):
            cifar10.identity()
            images = cifar10.load()
        assert images.train_images.shape == (50, 32, 32, 3)
        return images.train_images, images.train_labels


class Cora(Reader):
    """Eight files, six of them pickles."""

    def __init__(self) -> None:
        import scipy.sparse

        rng = np.random.default_rng(0)
        words = (rng.random((12, 9)) < 0.4).astype(np.float32)
        one_hot = np.eye(cora.CLASSES, dtype=np.int32)[rng.integers(cora.CLASSES, size=12)]
        parts = {"x": words[:3], "allx": words[:8], "tx": words[8:]}
        parts = {name: scipy.sparse.csr_matrix(part) for name, part in parts.items()}
        parts |= {"y": one_hot[:3], "ally": one_hot[:8], "ty": one_hot[8:]}
        parts["graph"] = defaultdict(list, {node: [(node + 1) % 12, (node * 5) % 12] for node in range(12)})
        self._files = {f"ind.cora.{name}": pickle.dumps(part, protocol=2) for name, part in parts.items()}
        self._files["ind.cora.test.index"] = b"9\n11\n8\n10\n"

    def case(self, draw: st.DrawFn) -> Contents:
        return draw(folder(self._files, changed))

    def read(self, place: Path) -> object:
        known = dataclasses.replace(cora.FILES, sha256=hashes(place, cora.FILES.sha256, "sha256"))
        with replaced(cora, FILES=known):
            cora.identity()
            graph = cora.load()
        return graphs.arrays(graph)


class Imdb(Reader):
    """The archive, or its unpacked reviews."""

    def __init__(self) -> None:
        self._reviews = {
            f"aclImdb/{split}/{label}/{number}_{2 if label == 'neg' else 9}.txt": f"a {label} film, {number}".encode()
            for split in ("test", "train")
            for label in ("neg", "pos")
            for number in range(3)
        }

    def case(self, draw: st.DrawFn) -> Contents:
        if draw(st.booleans()):
            return {imdb.ARCHIVE: draw(archive(self._reviews))}
        reviews = draw(folder(self._reviews, changed))
        if draw(st.integers(0, 9)) == 0:
            reviews = {name: content for name, content in reviews.items() if not name.startswith("aclImdb/train/pos/")}
            reviews["aclImdb/train/pos"] = draw(st.sampled_from(SPECIAL))
        return reviews

    def read(self, place: Path) -> object:
        packed = place / imdb.ARCHIVE
        md5 = hashlib.md5(packed.read_bytes()).hexdigest() if packed.is_file() else "none"
        imdb._hash_of_texts.cache_clear()
        with replaced(imdb, PER_LABEL=3, MD5=md5):
            imdb.identity()
            return imdb.load(50)


class Multi30k(Reader):
    """Four texts in gzip."""

    def __init__(self) -> None:
        self._files = {
            f"multi30k/{name}": b"".join(b"%s dog %d runs.\n" % (name[-5:-3].encode(), n) for n in range(5))
            for name in multi30k.FILES.sha256
        }

    def case(self, draw: st.DrawFn) -> Contents:
        contents = draw(folder(self._files, unpacked))
        packed = {name: gzip.compress(self._files[name], 1) for name in contents if contents[name] == self._files[name]}
        return contents | packed

    def read(self, place: Path) -> object:
        sha256 = hashes(place / "multi30k", multi30k.FILES.sha256, "sha256")
        with replaced(multi30k, FILES=dataclasses.replace(multi30k.FILES, sha256=sha256)):
            multi30k.identity()
            pairs = multi30k.load()
        if len(pairs.train) > 10_000:  # what is a text, however dull, is read; to make words of it is another matter
            return None
        return translations.arrays(pairs, 50, 50, 8, None)


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
        contents = draw(folder(self._files, changed))
        index = json.loads(self._files[files.INDEX])
        arrays = index["arrays"]
        for name, entry in arrays.items():
            content = contents[f"{name}.npy"]
            if isinstance(content, bytes):
                entry["sha256"] = hashlib.sha256(content).hexdigest()
        kind = draw(st.sampled_from(["hashes", "hashes", "name", "value", "bytes"]))
        if kind == "name":
            outside = hashlib.sha256(SECRET.encode()).hexdigest()
            name = draw(
                st.sampled_from(["../outside/secret", "../../x", "/etc/passwd", "", ".", "..", "a\0", "n" * 999])
            )
            arrays[name] = {"sha256": outside, "shape": [1], "dtype": "uint8"}
        elif kind == "value":
            index[draw(st.sampled_from(["about", "arrays"]))] = draw(
                st.sampled_from([None, [], {}, 1, "x", {"a": None}, {"a": {}}, {"a": {"sha256": 1}}, [[[]]]])
            )
        if isinstance(contents[files.INDEX], bytes) and kind != "bytes":
            contents[files.INDEX] = json.dumps(index).encode()
        return contents

    def read(self, place: Path) -> object:
        files.digest(place)
        files.about(place).get("note")
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
            lent = store.rounds(path.stem)
            loaded = store.load(path.stem)
            if loaded is None:  # a link to what is not there
                continue
            assert loaded == self._written, "it is not what was written"
            assert len(lent) == 3
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
        original = downloads.Original("file.bin", f"http://127.0.0.1:{self._port}/file.bin", "sha256", sha256)
        try:
            with contextlib.redirect_stderr(io.StringIO()):  # of the progress
                path = downloads.download(original, "this", "digits")
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
    "cifar10": Cifar10,
    "cora": Cora,
    "imdb": Imdb,
    "multi30k": Multi30k,
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
    (base / "outside").mkdir(exist_ok=True)
    (base / "outside" / "secret").write_text(SECRET)
    os.environ[downloads.VARIABLE] = str(place)
    before = listing(base)
    started = time.process_time()
    message = None
    try:
        result = reader.read(place)
        assert SECRET not in repr(result), "a file outside was read"
    except BenchlibError as error:
        message = str(error)
    took = time.process_time() - started
    assert took < MOST_SECONDS, f"{took:.1f} s of processor time"
    assert listing(base) == before, "something was written"
    if message is None:
        return "read"
    message.encode("utf-8")  # or it could not be printed
    assert any(name in message for name in reader.names(place)), f"no file in: {message}"
    assert SECRET not in message
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
