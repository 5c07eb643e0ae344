"""What of an outputs folder no result needs any more, and taking it away."""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from pathlib import Path

from benchlib import events, records
from benchlib.errors import BenchlibError
from benchlib.suite.at_work import alone


def clean(folder: Path, whole: bool, sure: bool) -> int:
    """Print what nothing needs of a folder of results, or the ``whole`` of it, and take it away if the user is
    ``sure``; 0. A BenchlibError where there is nothing to clean, it is not known what is needed, or a run is at work.
    """
    if not folder.is_dir():
        raise BenchlibError(f"{folder}: there is nothing to clean")
    find = everything if whole else unused
    paths = find(folder)  # which refuses before anything, a lock too, is written there
    with alone(folder) if sure else nullcontext():
        paths = find(folder) if sure else paths  # a run may have ended in between
        for path in paths:
            print(path)
        print(f"{len(paths)} of {size_mib(paths):.1f} MiB{'' if sure else '; to take them away, add --yes'}")
        if sure:
            take_away(paths)
    return 0


def unused(folder: Path) -> list[Path]:
    """Measurements that no notebook's result names, the event files of others than those, parts of files that were
    never finished, and inputs, which are made again in seconds. What was measured in JupyterLab only is among them: no
    record names it.

    A BenchlibError where it is not known what is needed: a notebook has not come to its end, or its record is gone.
    """
    executed = (path.stem for path in folder.glob("notebooks/[!.]*.ipynb"))
    by_name = {name: records.read(folder, name) for name in sorted({*records.names(folder), *executed})}
    unknown = [name for name, record in by_name.items() if record and record["status"] != "succeeded"]
    unknown += [name for name, record in by_name.items() if record is None and _left_something(folder, name)]
    if unknown or not any(by_name.values()):
        which = ", ".join(unknown) or "every notebook"
        raise BenchlibError(
            f"{folder}: of {which} there is no whole record, so that it is not known what is needed: run again first, "
            "or take all away with --all"
        )
    named = {Path(file) for record in by_name.values() if record for file in record["files"]}
    measured = sorted((folder / "measurements").glob("*.parquet"))
    inputs = folder / "inputs"
    return [
        *(path for path in measured if path.relative_to(folder) not in named),
        *events.others(folder / events.FOLDER, (path.stem for path in named)),
        *sorted(folder.glob("*/.partial-*")),
        *([inputs] if inputs.is_dir() else []),
    ]


def everything(folder: Path) -> list[Path]:
    """All that is in a folder of results; a BenchlibError if it does not look like one."""
    if not (folder / "notebooks").is_dir() or not (folder / "progress.log").is_file():
        raise BenchlibError(f"{folder}: this is no folder of results, so nothing is taken away: see --outputs")
    return sorted(folder.iterdir())


def take_away(paths: list[Path]) -> None:
    """Delete files and folders."""
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def size_mib(paths: list[Path]) -> float:
    """Of files, and of all in folders, in MiB."""
    files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()]
    return sum(file.stat().st_size for file in files) / 2**20


def _left_something(folder: Path, name: str) -> bool:
    """Is there anything that a notebook made, or its record, cut?"""
    return any((folder / part).exists() for part in (f"notebooks/{name}.ipynb", f"notebooks/{name}.json")) or any(
        (folder / "tables").glob(f"{name}_*")
    )
