"""Fixtures that several tests use."""

import importlib.util
import os
import py_compile
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchlib import env_vars, environments, frameworks, workloads
from benchlib.data import digits, downloads
from benchlib.data.images import Images
from benchlib.provenance import machine
from benchlib.runner import machine_lock

DOUBLES = Path(__file__).parent / "doubles"


@pytest.fixture(scope="session", autouse=True)
def own_turn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Who measures in these tests waits for no other benchlib on this machine, nor other for these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine_lock, "LOCK", tmp_path_factory.mktemp("turn") / "machine.lock")
        yield


@pytest.fixture(autouse=True)
def no_data_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests find no data but what they put there."""
    monkeypatch.delenv(downloads.VARIABLE, raising=False)


@pytest.fixture(autouse=True)
def digits_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the core is installed without the extra ``data``, images that are as easily told apart stand in for
    scikit-learn's digits.
    """
    if importlib.util.find_spec("sklearn") is not None:
        return

    def drawn() -> Images:
        rng = np.random.default_rng(0)
        labels = np.arange(1797, dtype=np.int32) % 10
        classes = rng.normal(8.0, 2.0, (10, 8, 8, 1))
        images = np.clip(rng.normal(classes[labels], 4.0), 0, 16).astype(np.uint8)
        test, train = slice(digits.TEST), slice(digits.TEST, None)
        return Images(images[train], labels[train], images[test], labels[test], "drawn", "")

    monkeypatch.setattr(digits, "require", lambda: None)
    monkeypatch.setattr(digits, "load", drawn)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium, by Playwright."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    assert chromium, "these tests need Debian's chromium: apt-get install chromium"
    given = {"executable_path": chromium, "args": ["--no-sandbox", "--disable-gpu"]}
    with sync_playwright() as playwright, playwright.chromium.launch(**given) as running:
        yield running


@pytest.fixture
def one_kind_of_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are saved as SVG alone, which the report shows: for tests that look into no other file of them."""
    monkeypatch.setattr("benchlib.plotting.figures.KINDS", ("svg",))


@pytest.fixture
def control_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable:
    """Make what the system says of this process's groups (None: nothing), and files of theirs, by name."""

    def made(groups: str | None, files: dict[str, str]) -> None:
        own, mounted = tmp_path / "cgroup", tmp_path / "mounted"
        if groups is not None:
            own.write_text(groups)
        for name, text in files.items():
            (mounted / name).parent.mkdir(parents=True, exist_ok=True)
            (mounted / name).write_text(text)
        monkeypatch.setattr(machine, "OWN_GROUPS", own if groups is not None else tmp_path / "none")
        monkeypatch.setattr(machine, "GROUPS", mounted)

    return made


@pytest.fixture
def toy_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' own frameworks and workloads are there, in workers, too."""
    monkeypatch.setenv(env_vars.WORKER_PATH, str(DOUBLES))
    for package in (frameworks, workloads):
        own = str(DOUBLES / package.__name__.rpartition(".")[2])
        monkeypatch.setattr(package, "__path__", [*package.__path__, own])


@pytest.fixture
def torch_2_9(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of that name, which the notebook ``versions`` compares with the default one, is there: this
    interpreter again.
    """
    folder = tmp_path_factory.mktemp("project")
    monkeypatch.setattr(environments, "root", lambda: folder)
    environments.add("torch-2.9", sys.executable)


@pytest.fixture
def stale() -> Callable[[Path], None]:
    """Leave a ``.pyc`` of other code, with the time and the size of a source, in its cache."""

    def leave(source: Path) -> None:
        text, times = source.read_bytes(), (source.stat().st_atime_ns, source.stat().st_mtime_ns)
        source.write_bytes(b"1 / 0".ljust(len(text)))
        os.utime(source, ns=times)
        py_compile.compile(str(source))
        source.write_bytes(text)
        os.utime(source, ns=times)
        with pytest.raises(ZeroDivisionError):
            exec(SourceFileLoader("taken", str(source)).get_code("taken"))

    return leave
