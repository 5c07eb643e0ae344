"""Sentences in two languages: words, vocabularies, targets, and back to sentences; the data sets; BLEU."""

import dataclasses
import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest

from benchlib import metrics, workloads
from benchlib.condition import Condition
from benchlib.data import multi30k, number_names
from benchlib.data.prepare import prepare
from benchlib.data.translations import END, FIRST, PADDING, START, UNKNOWN, Pairs, arrays, sentence, words
from benchlib.errors import BenchlibError
from benchlib.worker import files

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "multi30k"
needs_multi30k = pytest.mark.skipif(not SHARED.exists(), reason=f"NO REAL MULTI30K: {SHARED} is absent")
PAIRS = Pairs([("A dog.", "Un chien."), ("A cat and a dog", "Un chat")], [("A bird.", "Un chien!")], "made up")


def test_the_target_starts_and_its_labels_end():
    found = arrays(PAIRS, source_words=20, target_words=20, length=4, samples=None)
    words = files.lines(found["target_vocabulary"])
    assert words == ["un", ".", "chat", "chien"]
    un, dot, chat, chien = range(FIRST, FIRST + 4)
    assert found["train_target"].tolist() == [[START, un, chien, dot], [START, un, chat, PADDING]]
    assert found["train_labels"].tolist() == [[un, chien, dot, END], [un, chat, END, -1]]
    assert found["test_labels"].tolist() == [[un, chien, UNKNOWN, END]]
    assert found["train_source"][1].tolist()[-1] == END, "cut, its end included"
    assert found["train_lengths"].tolist() == [4, 4]
    assert files.lines(found["test_references"]) == ["un chien!"]


def test_the_vocabulary_is_of_the_training_pairs_that_are_taken():
    found = arrays(PAIRS, source_words=20, target_words=20, length=6, samples=1)
    assert files.lines(found["source_vocabulary"]) == [".", "a", "dog"]
    assert len(found["train_source"]) == 1


def test_a_sentence_ends_where_it_says():
    assert sentence([FIRST, FIRST + 1, END, FIRST], ["a", "b"]) == "a b"
    assert sentence([END], ["a"]) == ""


def test_bleu_is_100_for_the_references_and_0_for_other_words():
    references = ["un chien court dans la rue.", "l'homme dort."]
    assert metrics.bleu(references, references) == pytest.approx(100)
    assert metrics.bleu(["x y z w", "x y z w"], references) == 0


def test_what_was_predicted_is_turned_into_sentences_for_bleu():
    found = arrays(PAIRS, 20, 20, 4, None)
    right = found["train_labels"][:1].copy()
    data = {"target_vocabulary": found["target_vocabulary"], "test_references": files.text(["un chien."])}
    assert metrics.measure(workloads.load("seq2seq"), right, data) == metrics.bleu(["un chien."], ["un chien."])


def test_names_of_numbers_are_different_numbers():
    found = number_names.load()
    assert (len(found.train), len(found.test)) == (number_names.TRAIN, number_names.TEST)
    assert len({english for english, _ in found.train} | {english for english, _ in found.test}) == 4_500
    assert ("seventeen", "dix-sept") in found.train + found.test


def test_names_of_numbers_are_prepared(tmp_path: Path):
    condition = Condition(workload="seq2seq", train_samples=100)
    prepared = files.arrays(prepare(condition, 0, tmp_path))
    assert prepared["train_source"].shape == (100, 24)
    assert (prepared["test_labels"] != -1).any(axis=1).all()
    assert prepared["test_labels"].max() < condition.hyperparameters["target_words"]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Multi30k's files with two sentences each, and their hashes as those expected."""
    monkeypatch.setenv("BENCHLIB_DATA", str(tmp_path))
    (tmp_path / "multi30k").mkdir()
    hashes, held = {}, {}
    for name in multi30k.FILES.sha256:
        content = gzip.compress(b"one dog\ntwo dogs\n", mtime=0)
        (tmp_path / "multi30k" / name).write_bytes(content)
        hashes[name] = hashlib.sha256(content).hexdigest()
        held[name] = hashlib.sha256(gzip.decompress(content)).hexdigest()
    monkeypatch.setattr(multi30k, "FILES", dataclasses.replace(multi30k.FILES, sha256=hashes, content=held))
    return tmp_path / "multi30k"


@pytest.mark.parametrize("to", ["as it was", "packed again", "plain under its name", "plain"])
def test_multi30k_is_known_by_what_its_files_hold(made: Path, to: str):
    before = multi30k.identity()
    for path in list(made.iterdir()):
        packed = path.read_bytes()
        content = gzip.decompress(packed)
        path.unlink()
        path = path.with_suffix("") if to == "plain" else path
        written = {"as it was": packed, "packed again": gzip.compress(content, 1, mtime=1)}
        path.write_bytes(written.get(to, content))
    assert multi30k.load().train == [("one dog", "one dog"), ("two dogs", "two dogs")]
    assert multi30k.identity() == before
    for damaged in (path.read_bytes() + b"three dogs\n", path.read_bytes()[:-1]):
        path.write_bytes(damaged)
        with pytest.raises(BenchlibError, match=rf"{path.name}: it is cut or altered"):
            multi30k.load()


@needs_multi30k
def test_the_real_multi30k(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BENCHLIB_DATA", str(SHARED.parent))
    found = multi30k.load()
    assert (len(found.train), len(found.test)) == (29_000, 1_000)
    packed = {name: (SHARED / name).read_bytes() for name in multi30k.FILES.content}
    held = {name: hashlib.sha256(gzip.decompress(content)).hexdigest() for name, content in packed.items()}
    assert held == multi30k.FILES.content
    prepared = files.arrays(prepare(Condition(workload="seq2seq", data="multi30k", train_samples=500), 0, tmp_path))
    unknown = np.mean(prepared["train_source"] == UNKNOWN)
    assert unknown < 0.01, "the vocabulary is that of these sentences"


def test_a_perfect_translation_of_number_names_has_a_bleu_of_100():
    pairs = number_names.load()
    references = [french.lower() for _, french in [*pairs.train, *pairs.test]]
    assert any("-" in one for one in references)
    for one in references:
        known = sorted(set(words(one)))
        assert sentence([FIRST + known.index(word) for word in words(one)], known) == one
