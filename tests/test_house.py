"""The house: a room of benchlib has at most so many lines of Python, all counted. The numbers only go down."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

ROOMS = {
    "core": (
        1978,
        "__init__ public __main__ cli condition lab cache errors validation progress metrics scratch shown doctor "
        "manifest",
    ),
    "worker": (1200, "worker"),
    "data": (1572, "data"),
    "environments": (771, "environments interpreters plugins probe env_vars"),
    "provenance": (863, "provenance"),
    "runner": (1727, "runner"),
    "equivalence": (1873, "equivalence"),
    "stats": (1636, "stats"),
    "notebooks": (3060, "study notebooks parameter_types findings caveats certificates plotting tables reprs"),
    "suite and report": (2034, "suite report tensorboard"),
    "literature": (500, "literature"),
    "paper": (512, "paper latex"),
    "cluster": (893, "cluster"),
    "matching": (1102, "matching"),
}
"""By room its lines at most, and its modules and folders."""

WITHOUT = {"frameworks", "workloads"}
TESTS = 18685
NEW = 1500  # granted for then and now, many machines, a user's own model and the package


def lines(path: Path) -> int:
    """The lines of a module, or of all in a folder."""
    files = path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")]
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_stays_within_its_lines(room: str) -> None:
    most, names = ROOMS[room]
    assert sum(lines(ROOT / "benchlib" / name) for name in names.split()) <= most


def test_every_module_has_a_room() -> None:
    paths = (ROOT / "benchlib").glob("[!.]*")
    there = {path.stem for path in paths if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert there - WITHOUT == {name for _, names in ROOMS.values() for name in names.split()}


def test_the_tests_stay_within_their_lines() -> None:
    assert lines(ROOT / "tests") <= TESTS + NEW
