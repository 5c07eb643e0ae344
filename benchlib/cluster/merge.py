"""Several folders of results as one: each file once, nothing pooled, all or nothing."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchlib import manifest
from benchlib.cache import Measurement, Store
from benchlib.condition import Condition
from benchlib.errors import BenchlibError, write_error
from benchlib.runner.jobs import key

KINDS = ("certificates", "ceilings", "timers", "jobs")  # folders of JSON beside the measurements
MOST_CONFLICTS = 20  # that are named


@dataclass
class _Union:
    """What goes into the new folder, and what speaks against it."""

    measured: dict[str, tuple[Path, list[Measurement]]] = field(default_factory=dict)  # by the key of the file
    others: dict[str, tuple[Path, str]] = field(default_factory=dict)  # by place, with their content
    conflicts: list[str] = field(default_factory=list)
    twice: int = 0  # files that were in two folders


def merge(sources: Sequence[Path], outputs: Path) -> str:
    """Unite folders (or files of a visit) into the new folder ``outputs``; a sentence on it. Conflicts are an error."""
    if outputs.exists() and (not outputs.is_dir() or any(outputs.iterdir())):
        raise BenchlibError(f"{outputs}: is there already: name a new folder with --outputs")
    union = _Union()
    for source in sources:
        if source.is_file():
            _add_visit(union, source)
        elif (source / "measurements").is_dir():
            _add_folder(union, source)
        else:
            raise BenchlibError(f"{source}: no folder of results, and no file of a visit: it has no measurements/")
    _find_pooled(union)
    if union.conflicts:
        more = len(union.conflicts) - MOST_CONFLICTS
        said = [*union.conflicts[:MOST_CONFLICTS], *([f"and {more} more"] if more > 0 else [])]
        remedy = "nothing was written; move one of each away, or merge folders of hosts that have names of their own"
        raise BenchlibError("\n".join(["the same rows differ:", *said, remedy]))
    _write(union, sources, outputs)
    rows = [m for _, measured in union.measured.values() for m in measured]
    hosts = sorted({m.machine.get("host") or "no host recorded" for m in rows})
    return (
        f"{outputs}: {len(rows)} rows in {len(union.measured)} files, of {', '.join(hosts) or 'no host'}; "
        f"{union.twice} files were in two folders, and are there once"
    )


def _add_folder(union: _Union, folder: Path) -> None:
    store = Store(folder / "measurements")
    for path in sorted(store.folder.glob("[!.]*.parquet")):
        measured = store.load(path.stem)
        if measured:
            _add(union, path, path.stem, measured)
    for path in (path for kind in KINDS for path in sorted((folder / kind).glob("[!.]*.json"))):
        place, text = str(path.relative_to(folder)), path.read_text(encoding="utf-8")
        before, said = union.others.setdefault(place, (path, text))
        union.twice += before != path
        if said != text:
            if place.startswith("jobs/"):  # of two drivers: what is behind them is compared
                continue
            union.conflicts.append(f"  {before} and {path}: two results of one key")


def _add(union: _Union, path: Path, file: str, measured: list[Measurement]) -> None:
    before, rows = union.measured.setdefault(file, (path, measured))
    if before == path:
        return
    if [m.model_dump_json() for m in rows] == [m.model_dump_json() for m in measured]:  # nan is nan
        union.twice += 1
        return
    broken, broken_before = (any(m.crashed for m in some) for some in (measured, rows))
    if broken_before and not broken:
        union.measured[file] = (path, measured)
    elif broken_before or not broken:
        first = measured[0]
        whose = f"{first.condition}, repetition {first.repetition}, on {first.machine.get('host', 'no host')}"
        union.conflicts.append(f"  {before} and {path}: {whose}: measured twice, with other numbers")


def _find_pooled(union: _Union) -> None:
    """Refuse rows without a host that two folders have for one comparison: they could be of two machines."""
    places: dict[str, dict[Path, None]] = {}
    for path, measured in union.measured.values():
        if measured[0].kind == "comparison" and not measured[0].machine.get("host"):
            places.setdefault(measured[0].group, {})[path.parent] = None
    for group, folders in places.items():
        if len(folders) > 1:
            where = " and ".join(map(str, folders))
            union.conflicts.append(f"  {where}: comparison {group} is in both, from before hosts were recorded")


def read_visit(file: Path) -> Iterator[tuple[str, list[Measurement]]]:
    """The measurements in the plain file of a visit (``benchmarks/gpu.py``), under keys of their own.

    Rows from before hosts were recorded are labelled with the visit's commit: no other row is in an interval with them.
    """
    lines, files = [], dict[str, list[Measurement]]()
    for text in file.read_text(encoding="utf-8", errors="replace").splitlines():
        with contextlib.suppress(ValueError):  # a line that was cut off by a kill
            lines.append(json.loads(text))
    lines = [one for one in lines if isinstance(one, dict)]
    if not any(one.get("kind") == "measurement" for one in lines):
        raise BenchlibError(f"{file}: no measurement of a visit is in it")
    commit = next((str(one["commit"]) for one in lines if one.get("kind") == "visit" and one.get("commit")), "unknown")
    for value in (one["value"] for one in lines if one.get("kind") == "measurement"):
        own = {name: each for name, each in value.items() if name in Measurement.model_fields}
        try:
            m = Measurement.model_validate({**own, "condition": Condition(**value["condition"])})
        except (KeyError, TypeError, ValueError) as error:
            raise BenchlibError(f"{file}: a measurement that cannot be read: {error}") from None
        if not m.machine.get("host"):
            m.machine["host"] = f"a visit at {commit}"
            m.group, m.file = (key(visit=commit, was=was) for was in (m.group, m.file))
        files.setdefault(m.file, []).append(m)
    yield from files.items()


def _add_visit(union: _Union, file: Path) -> None:
    for name, measured in read_visit(file):
        _add(union, file / name, name, measured)


def _write(union: _Union, sources: Sequence[Path], outputs: Path) -> None:
    """Write everything beside ``outputs``, and give it that name when all is there."""
    outputs = outputs.absolute()
    for left in outputs.parent.glob(f".merging-{outputs.name}-*"):  # of one that was killed
        if not Path("/proc", left.name.rpartition("-")[2]).exists():
            shutil.rmtree(left, ignore_errors=True)
    partial = outputs.with_name(f".merging-{outputs.name}-{os.getpid()}")
    try:
        (partial / "measurements").mkdir(parents=True)
        for file, (path, measured) in union.measured.items():
            if path.is_file():
                shutil.copy2(path, partial / "measurements" / path.name)
            else:
                Store(partial / "measurements").save([*measured])
            assert (partial / "measurements" / f"{file}.parquet").is_file()
        for place, (path, _) in union.others.items():
            _copy(path, partial / place)
        for source in reversed([one for one in sources if one.is_dir()]):  # the first that has a notebook's result
            _copy_pages(source, partial)
        os.rename(partial, outputs)
    except OSError as error:
        raise BenchlibError(write_error(error, outputs)) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _copy_pages(source: Path, target: Path) -> None:
    """Copy executed notebooks, with the figures and tables that their records name."""
    for name, record in manifest.read_all(source).items():
        if record and record.get("status") == "succeeded":
            places = [f"notebooks/{name}.json", f"notebooks/{name}.ipynb", *_pages(record)]
            for place in (one for one in places if (source / one).is_file()):
                _copy(source / place, target / place)


def _pages(record: dict[str, Any]) -> list[str]:
    return [file for file in record.get("files", ()) if file.split("/")[0] in ("figures", "tables")]


def _copy(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, target)
