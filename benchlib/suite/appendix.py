"""The appendix of a paper: report, executed notebooks and measurements, as a folder and a zip with a manifest.

Nothing is executed or measured. What is missing, or is not what a notebook made, is named and left out; a stale result
is named, and bundled as it is shown.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from benchlib import records
from benchlib.errors import BenchlibError
from benchlib.report.export import export_html
from benchlib.report.load import glued
from benchlib.report.pdf import NoBrowser, print_pdf
from benchlib.suite.at_work import alone
from benchlib.suite.plan import REPORT, gathers, notebooks, require_profile

LOCK = "requirements.lock"
PROJECT = ("pyproject.toml", "CITATION.cff", "LICENSE")


def make(profile: str, outputs: Path | None, code: bool, paper: str) -> int:
    """Write ``appendix/`` and ``appendix.zip`` into the results of ``profile``; 1 if something is missing in them.

    The pages of notebooks show their ``code``, or results alone. PDFs are for ``paper``; without Chromium there are
    none, which is no failure. A BenchlibError if there is nothing to bundle.
    """
    folder = outputs or Path("outputs", profile)
    require_profile(profile)
    if not (folder / "notebooks").is_dir():
        raise BenchlibError(f"{folder} has no results: make them with: python -m benchlib run --profile {profile}")
    partial, appendix, packed = folder / ".partial-appendix", folder / "appendix", folder / ".partial-appendix.zip"
    with alone(folder):
        shutil.rmtree(partial, ignore_errors=True)
        try:
            bundle = _Bundle(profile, folder, partial)
            bundle.fill(code, paper)
            with zipfile.ZipFile(packed, "w") as archive:  # in order and dated alike: the same files, the same bytes
                for path in sorted(path for path in partial.rglob("*") if path.is_file()):
                    entry = zipfile.ZipInfo(path.relative_to(partial).as_posix())
                    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                    archive.writestr(entry, path.read_bytes())
            shutil.rmtree(appendix, ignore_errors=True)
            partial.rename(appendix)
            os.replace(packed, f"{appendix}.zip")
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    print(*bundle.notes, f"appendix: {appendix}, {appendix}.zip", sep="\n")
    if bundle.missing:
        print(f"missing in it, {len(bundle.missing)}:", *bundle.missing, sep="\n  ")
    return 1 if bundle.missing else 0


class _Bundle:
    """The files of an appendix as they come together in ``root``."""

    def __init__(self, profile: str, folder: Path, root: Path) -> None:
        self.profile, self.folder, self.root = profile, folder, root
        self.files: dict[str, dict[str, str]] = {}  # for the manifest
        self.missing: dict[str, None] = {}
        self.notes: list[str] = []
        self.records: dict[str, dict[str, Any]] = {}  # of the notebooks that succeeded
        for name in notebooks():
            record = records.read(folder, name)
            if record and record["status"] == "succeeded":
                self.records[name] = record
                if "stale" in record:
                    self._miss(f"executed/{name}.ipynb: is an older result, stale: {record['stale']}")
            elif gathers(name) or Path("parameters", profile, f"{name}.yaml").is_file():
                self._miss(f"notebooks/{name}.ipynb: {record['status'] if record else 'there is no whole record'}")
        if not self.records:
            raise BenchlibError(f"{folder}: no notebook has succeeded: python -m benchlib run --profile {profile}")

    def fill(self, code: bool, paper: str) -> None:
        """Write all files, then the README and the manifest."""
        wrong = records.all_wrong(self.folder)
        for name, record in self.records.items():
            captions = self._notebook(name, record, code and name != REPORT, paper)
            for path in record["files"]:
                if path in wrong:
                    self._miss(f"{path}: it {wrong[path]}")
                else:
                    self._add(path, captions.get(path, path.partition("/")[0]), self.folder / path, name)
        if REPORT in self.records:
            every = [self.folder / "tables" / "measurements.csv", *sorted(self.folder.glob(f"*/{REPORT}_*"))]
            for file in every:
                self._add(file.relative_to(self.folder).as_posix(), "of all notebooks", file, REPORT)
        documents = [file for kind in ("certificates", "ceilings") for file in self.folder.glob(f"{kind}/[!.]*.json")]
        for file in sorted(documents):
            self._add(f"{file.parent.name}/{file.name}", file.parent.name, _json(file) or Path())
        if not any(file.parent.name == "certificates" for file in documents):
            self._miss("certificates: there are none")
        for name in PROJECT:
            self._add(name, "of the project", Path(name))
        lock = records.digest(Path(LOCK).read_bytes()) if Path(LOCK).is_file() else None
        if {record["inputs"][LOCK] for record in self.records.values()} == {lock}:
            self._add(LOCK, "versions of all Python packages", Path(LOCK))
        else:
            self._miss(f"{LOCK}: it has changed since the notebooks were executed")
        lines = "".join(f"- {line}\n" for line in [*self.notes, *self.missing])
        readme = _README.format(profile=self.profile) + (f"\n## What is missing\n\n{lines}" if lines else "")
        self._add("README.md", "what is what", readme)
        manifest = {"profile": self.profile, "files": dict(sorted(self.files.items())), "notebooks": self.records}
        self._add("manifest.json", "", json.dumps(manifest, indent=1) + "\n")

    def _notebook(self, name: str, record: dict[str, Any], code: bool, paper: str) -> dict[str, str]:
        """A notebook with its parameters, as HTML and PDF too; the captions of its figures and tables, by path."""
        if record["parameters"]:
            path = f"parameters/{self.profile}/{name}.yaml"
            self._add(path, "parameters", yaml.safe_dump(record["parameters"], sort_keys=False))
        source, path = self.folder / f"notebooks/{name}.ipynb", f"executed/{name}.ipynb"
        if (text := _json(source)) is None:
            self._miss(f"notebooks/{name}.ipynb: it is gone, or no whole notebook")
            return {}
        self._add(path, "executed notebook", text, name)
        html = self.root / ("report.html" if name == REPORT else f"executed/{name}.html")
        try:
            export_html(self.root / path, html, code)
            if not self.notes:
                print_pdf(html, html.with_suffix(".pdf"), paper, datetime.fromisoformat(record["started_utc"]))
        except NoBrowser as error:
            self.notes.append(str(error))
        except BenchlibError as error:
            self._miss(f"{name}: {error}")
        for page in (html, html.with_suffix(".pdf")):
            if page.is_file():
                self._add(page.relative_to(self.root).as_posix(), "executed notebook", page, name)
        print(f"{name}: {html.name}", flush=True)
        try:
            return glued(source).get("captions", {})
        except BenchlibError:  # it has no summary
            return {}

    def _miss(self, line: str) -> None:
        self.missing[line] = None

    def _add(self, path: str, what: str, content: str | Path, notebook: str = "") -> None:
        """A file of the appendix: a copy, or a text without the names of this machine's folders."""
        if isinstance(content, Path) and not content.is_file():
            self._miss(f"{path}: it is gone, or not whole")
            return
        written = content.read_bytes() if isinstance(content, Path) else self._portable(content).encode()
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(written)
        self.files[path] = {"what": what, "notebook": notebook, "sha256": hashlib.sha256(written).hexdigest()}

    def _portable(self, text: str) -> str:
        """With words in place of folders of the machine: of the results, the project, its environment, the user."""
        names = {str(Path(one["interpreter"]).parent.parent): "<environment>" for one in self.records.values()}
        names |= {str(Path.home()): "<home>", str(Path.cwd()): "<project>", str(self.folder.resolve()): "<results>"}
        for folder in sorted(names.keys() - {"/"}, key=len, reverse=True):
            text = re.sub(rf"(?<![\w.-]){re.escape(folder)}(?![\w.-])", names[folder], text)
        return text


def _json(file: Path) -> str | None:
    """The text of a JSON file; None if it is not there, or not whole."""
    try:
        json.loads(text := file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return text


_README = """\
# Appendix: frameworks compared with benchlib, profile {profile}

Begin with `report.html` or `report.pdf`. `manifest.json` says of each file what it is, which notebook made it, and its
SHA-256; and of each notebook with which parameters, versions and machine it was executed. `executed/` has the executed
notebooks; `measurements/` has the raw times of every process, `tables/measurements.csv` a row for each.

To get the numbers again: install benchlib with `requirements.lock`, put `parameters/{profile}/` into its `parameters/`,
and run `make report PROFILE={profile}`. `<project>`, `<results>`, `<environment>` and `<home>` stand for folders of the
machine that this was made on.
"""
