"""The appendix of a paper: report, notebooks and measurements, as a folder and a zip with a manifest.

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

from benchlib.errors import BenchlibError
from benchlib.suite import experiments, records
from benchlib.suite.at_work import alone
from benchlib.suite.plan import GATHERING, REPORT, require_profile, sources
from benchlib.suite.report.export import export_html
from benchlib.suite.report.gathered import glued
from benchlib.suite.report.pdf import NoBrowser, print_pdf

LOCK = "requirements.lock"
PROJECT = {
    "pyproject.toml": "What the project is and needs",
    "CITATION.cff": "How to cite the software",
    "LICENSE": "The licence",
}
DOCUMENTS = {
    "certificates": "Whether two frameworks were shown to run the same model",
    "ceilings": "The machine's limits, for the share of its peak",
}


def make(profile: str, outputs: Path | None, code: bool, paper: str) -> int:
    """Write ``appendix/`` and ``appendix.zip`` into the results of ``profile``; 1 if something is missing in them.

    The pages of notebooks show their ``code``, or results alone. PDFs are for ``paper``; without Chromium there are
    none, which is no failure. A BenchlibError if there is nothing to bundle.
    """
    folder = outputs or Path("outputs", profile)
    require_profile(profile)
    if not (folder / "notebooks").is_dir():
        raise BenchlibError(f"{folder} has no results: make them with: python -m benchlib run --profile {profile}")
    partial, appendix, archive = folder / ".partial-appendix", folder / "appendix", folder / "appendix.zip"
    with alone(folder):
        shutil.rmtree(partial, ignore_errors=True)
        try:
            bundle = _Bundle(profile, folder, partial)
            bundle.gather(code, paper)
            _pack(partial, folder / f".partial-{archive.name}")
            shutil.rmtree(appendix, ignore_errors=True)
            partial.rename(appendix)
            os.replace(folder / f".partial-{archive.name}", archive)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    print(*bundle.notes, f"appendix: {appendix}, {archive}", sep="\n")
    if bundle.missing:
        print(f"missing in it, {len(bundle.missing)}:", *bundle.missing, sep="\n  ")
    return 1 if bundle.missing else 0


class _Bundle:
    """The files of an appendix as they come together in ``root``."""

    def __init__(self, profile: str, folder: Path, root: Path) -> None:
        self.profile, self.folder, self.root = profile, folder, root
        self.files: dict[str, dict[str, str]] = {}  # for the manifest
        self.missing: list[str] = []
        self.notes: list[str] = []
        self.records: dict[str, dict[str, Any]] = {}  # of the notebooks that succeeded
        for name in experiments.NOTEBOOKS:
            if name not in GATHERING and not Path("parameters", profile, f"{name}.yaml").is_file():
                continue
            record = records.read(folder, name)
            if record is None:
                self.missing.append(f"notebooks/{name}.json: there is no whole record, so the notebook is left out")
            elif record["status"] != "succeeded":
                self.missing.append(f"notebooks/{name}.ipynb: the notebook is {record['status']}, not succeeded")
            else:
                self.records[name] = record
                if "stale" in record:
                    self.missing.append(f"executed/{name}.ipynb: is an older result, stale: {record['stale']}")
        if not self.records:
            raise BenchlibError(f"{folder}: no notebook has succeeded: python -m benchlib run --profile {profile}")

    def gather(self, code: bool, paper: str) -> None:
        """Write all files, then the README and the manifest."""
        wrong = records.all_wrong(self.folder, experiments.NOTEBOOKS)
        for name, record in self.records.items():
            self._inputs(name, record)
            captions = self._executed(name, record, code and name != REPORT, paper)
            for path in record["files"]:
                if path in wrong:
                    self.missing.append(f"{path}: it {wrong[path]}")
                else:
                    self._add(path, captions.get(path, "Result"), self.folder / path, name)
        if REPORT in self.records:
            self._add("tables/measurements.csv", "Every process", self.folder / "tables/measurements.csv", REPORT)
            for file in sorted(self.folder.glob(f"*/{REPORT}_*")):
                self._add(file.relative_to(self.folder).as_posix(), "Every ratio of throughput", file, REPORT)
        for kind, what in DOCUMENTS.items():
            for file in sorted((self.folder / kind).glob("[!.]*.json")):
                try:
                    json.loads(text := file.read_text(encoding="utf-8"))
                except ValueError:
                    self.missing.append(f"{kind}/{file.name}: it is no whole JSON document")
                else:
                    self._add(f"{kind}/{file.name}", what, text)
        if not any((self.folder / "certificates").glob("[!.]*.json")):
            self.missing.append("certificates: there are none")
        locks = {record["inputs"][LOCK] for record in self.records.values()}
        if Path(LOCK).is_file() and locks != {records.digest(Path(LOCK).read_bytes())}:
            self.missing.append(f"{LOCK}: it has changed since the notebooks were executed")
        else:
            self._add(LOCK, "Versions of all Python packages, pinned", Path(LOCK))
        for name, what in PROJECT.items():
            self._add(name, what, Path(name))
        self.missing = list(dict.fromkeys(self.missing))
        lines = "".join(f"- {line}\n" for line in [*self.notes, *self.missing])
        text = _README.format(profile=self.profile) + (f"\n## What is missing\n\n{lines}" if lines else "")
        self._add("README.md", "What is what", text)
        manifest = {"profile": self.profile, "files": dict(sorted(self.files.items())), "notebooks": self.records}
        self._add("manifest.json", "What each file is, and what made it", json.dumps(manifest, indent=1) + "\n")

    def _inputs(self, name: str, record: dict[str, Any]) -> None:
        """The notebook and its parameters, if they are those that were executed."""
        notebook, file = Path("notebooks", f"{name}.ipynb"), Path("parameters", self.profile, f"{name}.yaml")
        same = {
            notebook: lambda: records.digest(sources(notebook)) == record["inputs"]["notebook"],
            file: lambda: experiments.load(name, file).model_dump(mode="json") == record["parameters"],
        }
        for path, is_same in same.items():
            try:
                changed = path.is_file() and not is_same()
            except BenchlibError:
                changed = True
            if changed:
                self.missing.append(f"{path}: it has changed since {name} was executed")
            elif path == notebook or path.is_file():  # a notebook that gathers may do without parameters
                self._add(path.as_posix(), f"What {name} was executed from", path)

    def _executed(self, name: str, record: dict[str, Any], code: bool, paper: str) -> dict[str, str]:
        """The executed notebook, also as HTML and PDF; the captions of its figures and tables, by path."""
        source, path = self.folder / f"notebooks/{name}.ipynb", self.root / f"executed/{name}.ipynb"
        base = "report" if name == REPORT else f"executed/{name}"
        html, pdf = self.root / f"{base}.html", self.root / f"{base}.pdf"
        try:
            json.loads(text := source.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            self.missing.append(f"notebooks/{name}.ipynb: it is gone, or no whole notebook")
            return {}
        self._add(f"executed/{name}.ipynb", f"Notebook {name}, executed", text, name)
        try:
            export_html(path, html, code)
            self._add(f"{base}.html", f"Notebook {name}, as a page that needs no network", html, name)
            if not self.notes:
                print_pdf(html, pdf, paper, datetime.fromisoformat(record["started_utc"]))
                self._add(f"{base}.pdf", f"Notebook {name}, on paper", pdf, name)
        except NoBrowser as error:
            self.notes.append(str(error))
        except BenchlibError as error:
            self.missing.append(f"{name}: {error}")
        print(f"{name}: {html.name}{f', {pdf.name}' if pdf.is_file() else ''}", flush=True)
        try:
            return glued(source).get("captions", {})
        except BenchlibError:  # it has no summary
            return {}

    def _add(self, path: str, what: str, content: str | Path, notebook: str = "") -> None:
        """A file of the appendix: a copy, or a text without the names of this machine's folders."""
        if isinstance(content, Path) and not content.is_file():
            self.missing.append(f"{path}: it is gone")
            return
        written = content.read_bytes() if isinstance(content, Path) else self._portable(content).encode()
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(written)
        self.files[path] = {"what": what, "notebook": notebook, "sha256": hashlib.sha256(written).hexdigest()}

    def _portable(self, text: str) -> str:
        """With words in place of folders of the machine: of the results, the project, its environment, the user."""
        names = {str(self.folder.resolve()): "<results>", str(Path.cwd()): "<project>", str(Path.home()): "<home>"}
        for record in self.records.values():
            environment = Path(record["interpreter"]).parent.parent
            names.setdefault(str(environment), "<environment>")
            if environment.name == ".venv":
                names.setdefault(str(environment.parent), "<project>")
        for folder in sorted(names.keys() - {"/"}, key=len, reverse=True):
            text = re.sub(rf"(?<![\w.-]){re.escape(folder)}(?![\w.-])", names[folder], text)
        return text


def _pack(root: Path, packed: Path) -> None:
    """All files in a zip: in order, and dated alike, so that the same files give the same bytes."""
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(root).as_posix())
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, path.read_bytes())


_README = """\
# Appendix: frameworks compared with benchlib, profile {profile}

Begin with `report.html` or `report.pdf`. `manifest.json` says of each file what it is, which notebook made it, and its
SHA-256; and of each notebook with which parameters, versions and machine it was executed. `executed/` has the executed
notebooks; `measurements/` has the raw times of every process, `tables/measurements.csv` a row for each.

To get the numbers again: install benchlib with `requirements.lock`, put `parameters/{profile}/` into its `parameters/`,
and run `make report PROFILE={profile}`. `<project>`, `<results>`, `<environment>` and `<home>` stand for folders of the
machine that this was made on.
"""
