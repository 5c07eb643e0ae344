"""The data: what the frameworks get, that it is the same for all of them, and what is said about damaged files."""

import functools
import http.server
import os
import pickle
import shutil
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import cifar10_from_shared
import numpy as np
import pytest
import sklearn.datasets

from benchlib import data, workloads
from benchlib.condition import Condition
from benchlib.data import cifar10, digits, downloads, images, weights
from benchlib.data.orders import EPOCHS, prepare_orders
from benchlib.data.prepare import OPERATOR_BATCHES, prepare, require
from benchlib.data.weights import draw, prepare_weights
from benchlib.errors import BenchlibError
from benchlib.worker import files
from benchlib.worker.batches import Batches
from benchlib.workloads import Weight

DIGITS = Condition(workload="cnn", data="digits", hyperparameters={"image_size": 8})
PER_BATCH = 20  # of the made-up batches; the original has 10,000
PIXELS = 5000  # a place among them in a batch's file


# The data sets there are


def test_every_data_set_says_what_it_is_and_an_unknown_one_is_refused_with_the_nearest_name():
    sizes = {"cifar10": 50_000, "digits": 1_437, "random": None, "imdb": 25_000, "digits_sequence": 1_437}
    sizes |= {"cora": 1, "digits_graph": 1, "multi30k": 29_000, "number_names": 4_000, "pydoc": None, "text": None}
    assert {name: data.get(name).train_size for name in data.names()} == sizes
    assert len({data.title(name) for name in data.names()}) == len(sizes)
    for name in data.names():
        assert len(data.get(name).note) > 40
    with pytest.raises(BenchlibError, match="'cifar100': did you mean 'cifar10'"):
        data.get("cifar100")


def test_a_hyperparameter_that_the_data_want_is_named():
    lacking = SimpleNamespace(workload="cnn", data="digits", hyperparameters={"pixels": 8})
    with pytest.raises(BenchlibError, match="workload cnn: hyperparameters: none is called 'image_size'"):
        data.get("digits").kind.named(lacking)


# Files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "inputs" / "numbers"
    files.write(folder, {"a": np.arange(1000.0), "b": np.eye(3, dtype=np.float32)}, {"note": "of a test"})
    return folder


def test_arrays_come_back_as_they_were_written_mapped_and_not_read(folder: Path):
    arrays = files.arrays(folder)
    assert list(arrays) == ["a", "b"]
    np.testing.assert_array_equal(arrays["a"], np.arange(1000.0))
    assert arrays["b"].dtype == np.float32
    assert not arrays["a"].flags.writeable
    assert files.describe(folder) == {"note": "of a test"}
    base = arrays["a"]
    while base.base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)


def test_digests_are_equal_for_equal_arrays_only(folder: Path):
    same, other, renamed = (folder.with_name(name) for name in ("same", "other", "renamed"))
    b = np.eye(3, dtype=np.float32)
    files.write(same, {"b": b, "a": np.arange(1000.0)}, {"note": "another"})
    files.write(other, {"a": np.arange(1000.0) + 1e-9, "b": b}, {})
    files.write(renamed, {"a": np.arange(1000.0), "c": b}, {})
    assert files.digest(same) == files.digest(folder)
    assert len({files.digest(path) for path in (folder, other, renamed)}) == 3


def _flip_a_bit(path: Path, place: int = -5) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


@pytest.mark.parametrize(("damage", "said"), [(_flip_a_bit, "altered"), (_cut, "cut"), (Path.unlink, "missing")])
def test_a_damaged_file_is_an_error_that_names_it_and_the_remedy(folder: Path, damage, said: str):
    files.check(folder)
    damage(folder / "a.npy")
    with pytest.raises(BenchlibError) as error:
        files.arrays(folder)
    assert str(error.value).startswith(f"{folder / 'a.npy'}: ")
    assert said in str(error.value)
    assert f"delete the folder {folder}" in str(error.value)


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"about": {}}'])
def test_a_damaged_list_of_files_is_an_error_that_names_it(folder: Path, content: str | None):
    index = folder / files.INDEX
    index.unlink() if content is None else index.write_text(content)
    with pytest.raises(BenchlibError) as error:
        files.arrays(folder)
    assert str(error.value).startswith(f"{index}: ")
    assert "delete the folder" in str(error.value)


NO_ROOM = OSError(28, "No space left on device")


@pytest.mark.parametrize(("stop", "told"), [(KeyboardInterrupt(), "^$"), (NO_ROOM, "target: this .*: No space")])
def test_a_writer_that_is_stopped_or_has_no_room_leaves_no_part_of_the_data(tmp_path, monkeypatch, stop, told):
    target, arrays = tmp_path / "target", {"a": np.zeros(3), "b": np.ones(3)}
    save, saved = np.save, []

    def stopped(path, *args, **kwargs):
        save(path, *args, **kwargs)
        if saved:
            raise stop
        saved.append(path)

    with monkeypatch.context() as patch:
        patch.setattr(np, "save", stopped)
        with pytest.raises((KeyboardInterrupt, BenchlibError), match=told):
            files.write(target, arrays, {})
    assert saved
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    files.write(target, arrays, {})
    np.testing.assert_array_equal(files.arrays(target)["b"], np.ones(3))
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "target"]


# Batches


@pytest.fixture
def numbered(tmp_path: Path) -> Path:
    """23 training images whose every pixel is their number, and 7 test images."""
    arrays = {}
    for split, count in (("train", 23), ("test", 7)):
        labels = np.arange(count, dtype=np.int32)
        arrays[f"{split}_inputs"] = np.tile(labels.astype(np.float32)[:, None, None, None], (1, 3, 8, 8))
        arrays[f"{split}_labels"] = labels
    files.write(tmp_path / "numbered", arrays, {})
    return tmp_path / "numbered"


def orders(folder: Path, seed: int, epoch: int = 1) -> Path:
    """Those that the parent draws for the training samples in ``folder``."""
    return prepare_orders(len(files.arrays(folder)["train_labels"]), seed, epoch, folder.parent)


def test_an_epoch_has_every_sample_once_but_those_of_the_incomplete_batch(numbered: Path):
    batches = Batches(numbered, 5, orders(numbered, 3))
    epoch = list(batches.epoch(2))
    assert len(epoch) == batches.steps_per_epoch == 4
    order = np.random.default_rng([3, 2]).permutation(23)
    assert np.concatenate([labels for _, labels in epoch]).tolist() == order[:20].tolist()
    for inputs, labels in epoch:
        assert (inputs[:, 1, 2, 3] == labels).all(), "an image goes with its label"


def test_batches_are_what_the_frameworks_want(numbered: Path):
    inputs, labels = Batches(numbered, 5, orders(numbered, 0)).batch(1, 0)
    assert (inputs.dtype, inputs.shape) == (np.float32, (5, 3, 8, 8))
    assert (labels.dtype, labels.shape) == (np.int32, (5,))
    assert all(inputs.flags[name] for name in ("C_CONTIGUOUS", "OWNDATA", "WRITEABLE"))


def test_the_order_is_the_same_each_time_and_another_for_each_seed_and_epoch(numbered: Path):
    one, again, other = (Batches(numbered, size, orders(numbered, seed)) for size, seed in ((5, 0), (7, 0), (5, 1)))
    np.testing.assert_array_equal(one.order(1), again.order(1))
    assert one.order(1).tolist() != one.order(2).tolist()
    assert one.order(1).tolist() != other.order(1).tolist()
    assert one.order_digest(3) == again.order_digest(3)
    assert len({one.order_digest(1), one.order_digest(2), other.order_digest(1)}) == 3


def test_orders_are_drawn_by_the_parent_and_only_read_by_batches(numbered: Path, monkeypatch: pytest.MonkeyPatch):
    """In a worker's environment another numpy may draw others."""
    given = [orders(numbered, 3), orders(numbered, 3, EPOCHS + 1)]
    expected = {n: np.random.default_rng([3, n]).permutation(23).tolist() for n in (1, EPOCHS, EPOCHS + 1)}
    monkeypatch.setattr(np.random, "default_rng", None)
    batches = Batches(numbered, 5, given[0])
    assert [batches.order(n).tolist() for n in (1, EPOCHS)] == [expected[n] for n in (1, EPOCHS)]
    with pytest.raises(BenchlibError, match=f"the order of epoch {EPOCHS + 1} is not among those given"):
        batches.order(EPOCHS + 1)
    batches.take_orders(given[1])
    assert batches.order(EPOCHS + 1).tolist() == expected[EPOCHS + 1]
    assert files.arrays(given[0])["orders"].dtype == np.int32, "50,000 samples take 6 MB"


def test_orders_of_other_data_are_refused(numbered: Path):
    with pytest.raises(BenchlibError, match=r"has orders of 22 samples, .*numbered has 23"):
        Batches(numbered, 5, prepare_orders(22, 0, 1, numbered.parent))


def test_orders_that_were_altered_are_refused(numbered: Path):
    folder = orders(numbered, 0)
    drawn = np.load(folder / "orders.npy")
    np.save(folder / "orders.npy", drawn[:, ::-1])
    with pytest.raises(BenchlibError, match=r"orders\.npy: this file of prepared data is cut or altered"):
        Batches(numbered, 5, folder)


def test_the_last_test_batch_is_filled_up_and_says_how_many_are_real(numbered: Path):
    batches = list(Batches(numbered, 5, orders(numbered, 0)).test(3))
    filled = [([0, 1, 2], 3), ([3, 4, 5], 3), ([6, 6, 6], 1)]
    assert [(inputs[:, 0, 0, 0].tolist(), real) for (inputs, _), real in batches] == filled


def test_a_batch_larger_than_the_data_is_refused(numbered: Path):
    with pytest.raises(BenchlibError, match=r"batch_size 24 is larger than the 23 training samples in .*numbered"):
        Batches(numbered, 24, orders(numbered, 0)).batch(1, 0)


# Digits, prepared


@pytest.mark.parametrize("size", [8, 16, 32])
def test_digits_are_standardised_images_with_labels(tmp_path: Path, size: int):
    """Kept as they come, whatever size is asked for: a batch is enlarged when it is made."""
    folder = prepare(DIGITS.but(hyperparameters={"image_size": size}), 0, tmp_path)
    arrays = files.arrays(folder)
    assert {name: (array.shape, str(array.dtype)) for name, array in arrays.items()} == {
        "train_inputs": ((1437, 3, 8, 8), "float32"),
        "train_labels": ((1437,), "int32"),
        "test_inputs": ((360, 3, 8, 8), "float32"),
        "test_labels": ((360,), "int32"),
        "repeat": ((1,), "int32"),
    }
    assert arrays["repeat"] == [size // 8]
    (inputs, _), _ = next(Batches(folder, 5, None).test(5))
    assert inputs.shape == (5, 3, size, size)
    train = arrays["train_inputs"].astype(np.float64)
    np.testing.assert_allclose(train.mean(axis=(0, 2, 3)), 0, atol=1e-6)
    np.testing.assert_allclose(train.std(axis=(0, 2, 3)), 1, atol=1e-6)
    about = files.describe(folder)
    assert (about["data"], about["note"]) == ("digits", "")
    assert folder.name.startswith(f"digits-{size}px-")


def test_digits_are_scikit_learns_digits_each_once(tmp_path: Path):
    folder = prepare(DIGITS.but(hyperparameters={"image_size": 16}), 0, tmp_path)
    arrays, about = files.arrays(folder), files.describe(folder)
    batches = Batches(folder, 1, orders(folder, 0))
    train = {int(place): batches.batch(1, i)[0] for i, place in enumerate(batches.order(1))}
    prepared = np.concatenate([*(train[i] for i in range(1437)), *(inputs for (inputs, _), _ in batches.test(1))])
    assert prepared.flags.c_contiguous
    assert (prepared == prepared[:, :1]).all(), "three equal channels"
    assert (prepared == prepared[:, :, ::2, ::2].repeat(2, axis=2).repeat(2, axis=3)).all(), "pixels repeated"
    pixels = np.rint(prepared[:, 0, ::2, ::2] * about["standard_deviation"][0] + about["mean"][0]).astype(int)
    labels = np.concatenate([arrays["train_labels"], arrays["test_labels"]])
    original = sklearn.datasets.load_digits()
    assert sorted(zip(pixels.reshape(len(pixels), -1).tolist(), labels.tolist(), strict=True)) == sorted(
        zip(original.data.astype(int).tolist(), original.target.tolist(), strict=True)
    )


def test_other_digits_than_expected_are_refused(monkeypatch: pytest.MonkeyPatch):
    altered = sklearn.datasets.load_digits()
    altered.images[17, 3, 3] += 1
    monkeypatch.setattr(sklearn.datasets, "load_digits", lambda: altered)
    with pytest.raises(BenchlibError, match=r"scikit-learn .* has other images than expected .* install"):
        digits.load()


def test_a_subset_is_balanced_the_same_for_all_seeds_and_standardised_as_the_whole(tmp_path: Path):
    subset = prepare(DIGITS.but(train_samples=200), 0, tmp_path)
    assert prepare(DIGITS.but(train_samples=200), 1, tmp_path) == subset
    small, whole = files.arrays(subset), files.arrays(prepare(DIGITS, 0, tmp_path))
    assert np.abs(np.bincount(small["train_labels"]) - 20).max() <= 1
    images_of_whole = {image.tobytes() for image in whole["train_inputs"]}
    assert all(image.tobytes() in images_of_whole for image in small["train_inputs"])
    smaller = files.arrays(prepare(DIGITS.but(train_samples=100), 0, tmp_path))
    np.testing.assert_array_equal(smaller["train_inputs"], small["train_inputs"][:100])
    np.testing.assert_array_equal(small["test_inputs"], whole["test_inputs"])


def test_every_prefix_of_a_balanced_order_is_balanced():
    labels = np.repeat([0, 1, 2], [300, 100, 200])
    order = images.balanced_order(labels, seed=1)
    assert sorted(order) == list(range(600))
    for n in range(1, 601):
        assert np.abs(np.bincount(labels[order[:n]], minlength=3) - n * np.array([3, 1, 2]) / 6).max() <= 1.5
    assert order.tolist() != images.balanced_order(labels, seed=2).tolist()


def test_prepared_data_is_made_once_and_checked_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = prepare(DIGITS, 0, tmp_path)
    monkeypatch.setattr(digits, "load", lambda: pytest.fail("loaded again"))
    assert prepare(DIGITS, 5, tmp_path) == folder
    _flip_a_bit(folder / "train_inputs.npy")
    with pytest.raises(BenchlibError, match=r"train_inputs\.npy: .*altered"):
        prepare(DIGITS, 0, tmp_path)
    shutil.rmtree(folder)
    monkeypatch.undo()
    assert prepare(DIGITS, 0, tmp_path) == folder


# Operators and weights, drawn


SIZES = {"in_channels": 3, "out_channels": 5, "image_size": 8}
OPERATOR = Condition(workload="conv2d", batch_size=4, hyperparameters=SIZES)


def test_an_operator_gets_seeded_inputs_and_gradients(tmp_path: Path):
    batches = Batches(prepare(OPERATOR, 7, tmp_path), 4, None).operator_batches()
    assert [(x.shape, gradient.shape) for x, gradient in batches] == [((4, 3, 8, 8), (4, 5, 8, 8))] * OPERATOR_BATCHES
    rng = np.random.default_rng(7)
    for given, gradient in batches:
        expected = workloads.load("conv2d").inputs(OPERATOR.hyperparameters, 4, rng)
        np.testing.assert_array_equal(given, expected[0])
        np.testing.assert_array_equal(gradient, expected[1])
        assert given.dtype == gradient.dtype == np.float32
        assert given.flags.owndata
    larger = OPERATOR.but(hyperparameters={**OPERATOR.hyperparameters, "image_size": 9})
    others = {prepare(OPERATOR, 7, tmp_path), prepare(OPERATOR, 8, tmp_path), prepare(larger, 7, tmp_path)}
    assert len(others) == 3


def test_weights_have_the_declared_shapes_and_distributions():
    workload = workloads.load("cnn")
    drawn = draw(workload, workload.values({}), seed=0)
    declared = workload.weights(workload.values({}))
    assert list(drawn) == list(declared)
    uniform = 0
    for name, weight in declared.items():
        assert drawn[name].shape == weight.shape
        assert drawn[name].dtype == np.float32
        if weight.init == "glorot_uniform":
            limit = np.sqrt(6 / sum(weight.fan))
            assert 0.95 * limit < np.abs(drawn[name]).max() <= np.float32(limit)
            assert drawn[name].std() == pytest.approx(limit / np.sqrt(3), rel=0.05)
            uniform += 1
    assert uniform == 6


def test_normal_and_constants_are_drawn_and_nothing_else():
    rng = np.random.default_rng(0)
    normal = weights._draw("w", Weight((200, 200), "normal"), rng)
    assert (normal.mean(), normal.std()) == pytest.approx((0, 1), abs=0.02)
    between = weights._draw("w", Weight((200, 200), "between", bounds=(0.5, 2.5)), rng)
    assert (between.min(), between.mean(), between.max()) == pytest.approx((0.5, 1.5, 2.5), abs=0.02)
    assert between.dtype == np.float32
    for init, value in (("ones", 1), ("zeros", 0), ("constant", 2.5)):
        assert weights._draw("w", Weight((2,), init, value=2.5), rng).tolist() == [value, value]
    with pytest.raises(BenchlibError, match="weight 'w': no rule draws 'orthogonal'"):
        weights._draw("w", Weight((2,), "orthogonal"), rng)


def test_weights_depend_on_the_seed_and_not_on_what_is_not_theirs(tmp_path: Path):
    without_dropout = DIGITS.but(hyperparameters={"image_size": 8, "conv_dropout": 0.0}, learning_rate=0.5)
    folder = prepare_weights(DIGITS, 0, tmp_path)
    assert prepare_weights(without_dropout, 0, tmp_path) == folder
    other = prepare_weights(DIGITS, 1, tmp_path)
    larger = prepare_weights(DIGITS.but(hyperparameters={"image_size": 16}), 0, tmp_path)
    assert len({folder, other, larger}) == 3
    workload = workloads.load("cnn")
    declared = workload.weights(DIGITS.hyperparameters)
    for name, array in draw(workload, DIGITS.hyperparameters, 0).items():
        np.testing.assert_array_equal(files.arrays(folder)[name], array)
        assert (array == files.arrays(other)[name]).all() == (declared[name].init == "zeros")


# CIFAR-10: made-up images in the original's layout, so that these tests need nothing from outside


@pytest.fixture
def batches_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder cifar-10-batches-py with random images, in the folder that ``BENCHLIB_DATA`` names."""
    monkeypatch.setattr(cifar10, "PER_BATCH", PER_BATCH)
    monkeypatch.setenv("BENCHLIB_DATA", str(tmp_path / "data"))
    rng = np.random.default_rng(0)
    train, test = (rng.integers(0, 256, (n * PER_BATCH, 32, 32, 3), dtype=np.uint8) for n in (5, 1))
    labels = np.arange(5 * PER_BATCH) // 10, np.arange(PER_BATCH)[::-1] % 10
    return cifar10_from_shared.write(tmp_path / "data", train, labels[0], test, labels[1])


@pytest.fixture
def originals(batches_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, taken for the original files."""
    md5 = {name: downloads.hash_of(batches_folder / name, "md5") for name in cifar10.BATCHES_MD5}
    monkeypatch.setattr(cifar10, "BATCHES_MD5", md5)
    return batches_folder


@pytest.fixture
def archive(originals: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive of them in place of the folder, taken for the original archive."""
    path = originals.with_name(cifar10.ARCHIVE)
    with tarfile.open(path, "w:gz") as tar:
        tar.add(originals, arcname=cifar10.FOLDER)
    shutil.move(originals, originals.parent.parent / "elsewhere")
    monkeypatch.setattr(cifar10, "ARCHIVE_MD5", downloads.hash_of(path, "md5"))
    return path


def _load_error(*said: object) -> str:
    """Load, and return the message, which says all this and where the original is to be had."""
    with pytest.raises(BenchlibError) as error:
        cifar10.load()
    for text in (*said, cifar10.URL):
        assert str(text) in str(error.value)
    return str(error.value)


def test_unpacked_batches_are_read(batches_folder: Path):
    loaded = cifar10.load()
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(loaded.train_images, rng.integers(0, 256, (5 * PER_BATCH, 32, 32, 3), dtype=np.uint8))
    np.testing.assert_array_equal(loaded.test_images, rng.integers(0, 256, (PER_BATCH, 32, 32, 3), dtype=np.uint8))
    np.testing.assert_array_equal(loaded.train_labels, np.arange(5 * PER_BATCH) // 10)
    np.testing.assert_array_equal(loaded.test_labels, np.arange(PER_BATCH)[::-1] % 10)


@pytest.mark.parametrize("name", cifar10.FOLDERS)
def test_the_archive_and_what_was_unpacked_from_it_are_the_same_data(archive: Path, name: str):
    archive = archive.rename(archive.with_name(cifar10.ARCHIVES[-1]))  # as Keras names it
    packed, identity = cifar10.load(), cifar10.identity()
    archive.unlink()
    (archive.parent / name).parent.mkdir(exist_ok=True)
    shutil.move(archive.parent.parent / "elsewhere", archive.parent / name)
    unpacked = cifar10.load()
    np.testing.assert_array_equal(packed.train_images, unpacked.train_images)
    np.testing.assert_array_equal(packed.test_labels, unpacked.test_labels)
    assert packed.note == unpacked.note == ""
    assert identity == cifar10.identity() == "original"


def test_other_bytes_are_other_data(batches_folder: Path, tmp_path: Path):
    condition = Condition(workload="cnn", data="cifar10", batch_size=8, hyperparameters={"image_size": 8})
    folder = prepare(condition, 0, tmp_path / "inputs")
    before = files.digest(folder)
    _flip_a_bit(batches_folder / "data_batch_2", PIXELS)
    other = prepare(condition, 0, tmp_path / "inputs")
    assert other != folder
    assert files.digest(other) != before


def test_a_folder_without_cifar10_is_an_error_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BENCHLIB_DATA", str(tmp_path))
    told = rf"BENCHLIB_DATA={tmp_path}: there is none of cifar-10-python\.tar\.gz, .*cifar-10-batches-py.* unset BENCH"
    with pytest.raises(BenchlibError, match=told):
        require(Condition(workload="cnn", data="cifar10"))
    require(DIGITS)


@pytest.mark.parametrize("length", [0, 1000])
def test_a_cut_batch_is_named(batches_folder: Path, length: int):
    os.truncate(batches_folder / "data_batch_4", length)
    _load_error(batches_folder / "data_batch_4", "cut or altered", "expected")


def test_an_altered_batch_among_originals_is_named(originals: Path):
    md5 = cifar10.BATCHES_MD5["data_batch_3"]
    _flip_a_bit(originals / "data_batch_3", PIXELS)
    _load_error(originals / "data_batch_3", "cut or altered", md5)


def _rewrite(path: Path, **changes: object) -> None:
    content = {key.encode(): value for key, value in changes.items()}
    path.write_bytes(pickle.dumps({**pickle.loads(path.read_bytes(), encoding="bytes"), **content}, protocol=2))


OTHER_CONTENT = [{"data": np.zeros((PER_BATCH, 3072), np.float32)}]
OTHER_CONTENT += [{"labels": labels} for labels in ([0] * (PER_BATCH - 1), [0, -1] + [3] * (PER_BATCH - 2))]


@pytest.mark.parametrize("changes", OTHER_CONTENT)
def test_a_batch_with_other_content_is_named(batches_folder: Path, changes: dict):
    _rewrite(batches_folder / "data_batch_2", **changes)
    _load_error(batches_folder / "data_batch_2", "expected a pickle with 20 images", "'labels' 0 to 9")


def test_a_cut_archive_is_named(archive: Path):
    os.truncate(archive, archive.stat().st_size // 2)
    _load_error(archive, "cut or altered", cifar10.ARCHIVE_MD5, "replace the present one")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that a server on this machine serves as the archive's home; the user's cache is empty."""
    (tmp_path / "served").mkdir()
    handler = functools.partial(_Quiet, directory=tmp_path / "served")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("BENCHLIB_DATA", raising=False)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as home:
        monkeypatch.setattr(cifar10, "URL", f"http://127.0.0.1:{home.server_port}/{cifar10.ARCHIVE}")
        threading.Thread(target=home.serve_forever, daemon=True).start()
        yield tmp_path / "served"
        home.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def test_the_archive_is_downloaded_once(archive: Path, server: Path):
    shutil.move(archive, server)
    assert cifar10.load().train_images.shape == (5 * PER_BATCH, 32, 32, 3)
    (server / cifar10.ARCHIVE).unlink()
    assert cifar10.load().note == ""


def test_a_download_of_something_else_is_refused(archive: Path, server: Path):
    (server / cifar10.ARCHIVE).write_bytes(b"<html>please log in</html>")
    message = _load_error(cifar10.ARCHIVE_MD5, "could not be downloaded", "BENCHLIB_DATA", "data: digits")
    assert message.startswith(cifar10.URL)
