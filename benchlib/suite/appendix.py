"""The appendix of a paper: report, notebooks, measurements and what they were made with, ready for an archive.

Everything is taken from the outputs of a run; nothing is executed or measured. What is missing, or is not what a
notebook made, is named and left out, and the rest is bundled; a stale result is named, and bundled as it is shown.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

import nbformat

from benchlib.errors import BenchlibError
from benchlib.suite import experiments, records
from benchlib.suite.at_work import alone
from benchlib.suite.crate import write_crate
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
"""Files of the project that go with the results."""


def make(profile: str, outputs: Path | None, code: bool, paper: str) -> int:
    """Write ``appendix/`` and ``appendix.zip`` into ``outputs``, the folder of the results of ``profile``
    (``outputs/<profile>`` if None); 0 if nothing is missing in them, else 1.

    The working directory is the project's folder. The pages of notebooks show their ``code``, or results alone. PDFs
    are for ``paper``; that there is no Chromium to make them is said, and is no failure. A BenchlibError if there is
    nothing to bundle.
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
            bundle.gather()
            bundle.make_pages(code, paper)
            bundle.describe()
            _pack(partial, folder / f".partial-{archive.name}")
            shutil.rmtree(appendix, ignore_errors=True)
            partial.rename(appendix)
            os.replace(folder / f".partial-{archive.name}", archive)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    for line in bundle.notes:
        print(line)
    print(f"appendix: {appendix}, {archive}")
    if bundle.missing:
        print(f"missing in it, {len(bundle.missing)}:", *bundle.missing, sep="\n  ")
    return 1 if bundle.missing else 0


class _Bundle:
    """The files of an appendix as they come together in ``root``."""

    def __init__(self, profile: str, folder: Path, root: Path) -> None:
        self.profile, self.folder, self.root = profile, folder, root
        self.files: dict[str, str] = {}  # what each is, in words, by its path in the appendix
        self.missing: list[str] = []
        self.notes: list[str] = []
        self.records: dict[str, dict[str, Any]] = {}  # of the notebooks that succeeded
        self.made_by: dict[str, list[str]] = {}  # by notebook: what it made, as far as it is here
        self.wrong = records.all_wrong(folder, experiments.NOTEBOOKS)
        parameters = Path("parameters", profile)
        for name in experiments.NOTEBOOKS:
            if name not in GATHERING and not (parameters / f"{name}.yaml").is_file():
                continue
            record = records.read(folder, name)
            if record is None:
                self.missing.append(f"notebooks/{name}.json: there is no whole record, so the notebook is left out")
            elif record["status"] != "succeeded":
                self.missing.append(f"notebooks/{name}.ipynb: the notebook is {record['status']}, not succeeded")
            else:
                self.records[name] = record
                if "stale" in record:
                    self.missing.append(
                        f"executed/{name}.ipynb: is a result of before, which is stale ({record['stale']}); there is "
                        "none of what is here now"
                    )
        if not self.records:
            raise BenchlibError(
                f"{folder}: no notebook has succeeded there: python -m benchlib run --profile {profile}"
            )

    def gather(self) -> None:
        """Copy everything but the pages."""
        for name, record in self.records.items():
            self.made_by[name] = []
            self._executed(name, record)
            self._inputs(name, record)
            self._results(name, record)
        if REPORT in self.records:
            path = "tables/measurements.csv"
            self._copy(self.folder / path, path, "Every process, a row each", REPORT)
            for file in sorted(self.folder.glob(f"*/{REPORT}_*")):
                what = "Every ratio of throughput, relative to every choice of baseline"
                self._copy(file, file.relative_to(self.folder).as_posix(), what, REPORT)
        if not self._documents("certificates", "Whether two frameworks were shown to run the same model"):
            self.missing.append("certificates: there are none")
        self._documents("ceilings", "The machine's limits, for the share of its peak")
        self._lock()
        for name, what in PROJECT.items():
            self._copy(Path(name), name, what)

    def make_pages(self, code: bool, paper: str) -> None:
        """The executed notebooks as HTML and PDF; the report's page is on top, and never shows code."""
        printing = True
        for name, record in self.records.items():
            notebook = self.root / f"executed/{name}.ipynb"
            if not notebook.is_file():
                continue
            base, what = ("report", "The report") if name == REPORT else (f"executed/{name}", f"Notebook {name}")
            html, pdf = self.root / f"{base}.html", self.root / f"{base}.pdf"
            try:
                export_html(notebook, html, code and name != REPORT)
                self._add(f"{base}.html", f"{what}, as a page that needs no network", name)
                if printing:
                    print_pdf(html, pdf, paper, datetime.fromisoformat(record["started_utc"]))
                    self._add(f"{base}.pdf", f"{what}, on paper", name)
            except NoBrowser as error:
                printing = False
                self.notes.append(str(error))
            except BenchlibError as error:
                self.missing.append(f"{name}: {error}")
            print(f"{name}: {html.name}{f', {pdf.name}' if pdf.is_file() else ''}", flush=True)

    def describe(self) -> None:
        """Write the README and the metadata."""
        readme = _README.format(profile=self.profile)
        if lines := [*self.notes, *self.missing]:
            readme += "\n## What is missing\n\n" + "".join(f"- {line}\n" for line in lines)
        self._write("README.md", readme, "What is what")
        write_crate(self.root, self.profile, self.files, self.records, self.made_by)

    def _executed(self, name: str, record: dict[str, Any]) -> None:
        """The executed notebook and its record."""
        source = self.folder / f"notebooks/{name}.ipynb"
        try:
            text = source.read_text(encoding="utf-8")
            nbformat.reads(text, as_version=4)
        except (OSError, ValueError):
            self.missing.append(f"notebooks/{name}.ipynb: it is gone, or no whole notebook")
        else:
            self._write(f"executed/{name}.ipynb", text, f"Notebook {name}, executed", name)
        text = json.dumps(record, indent=1) + "\n"
        what = f"Record of {name}: parameters, inputs, versions, machine, hashes of what it made"
        self._write(f"executed/{name}.json", text, what, name)

    def _inputs(self, name: str, record: dict[str, Any]) -> None:
        """The notebook and its parameters, if they are those that were executed."""
        notebook, parameters = Path("notebooks", f"{name}.ipynb"), Path("parameters", self.profile, f"{name}.yaml")
        try:
            same = not notebook.is_file() or records.digest(sources(notebook)) == record["inputs"]["notebook"]
        except BenchlibError:
            same = False
        if not same:
            self.missing.append(f"{notebook}: it has changed since it was executed")
        else:
            self._copy(notebook, f"notebooks/{name}.ipynb", f"Notebook {name}, before it was executed")
        if not parameters.is_file():
            return  # only the report may do without
        try:
            same = experiments.load(name, parameters).model_dump(mode="json") == record["parameters"]
        except BenchlibError:
            same = False
        if same:
            self._copy(parameters, parameters.as_posix(), f"Parameters of {name}")
        else:
            self.missing.append(f"{parameters}: it has changed since {name} was executed")

    def _results(self, name: str, record: dict[str, Any]) -> None:
        """Figures, tables and measurements, if they are those that the notebook made."""
        captions = _captions(self.folder / f"notebooks/{name}.ipynb")
        for path in record["files"]:
            if path in self.wrong:
                line = f"{path}: it {self.wrong[path]}"
                if line not in self.missing:
                    self.missing.append(line)
                continue
            what = "Measurements of one set of processes" if path.startswith("measurements/") else captions.get(path)
            self._copy(self.folder / path, path, what or f"Result of {name}", name)

    def _documents(self, kind: str, what: str) -> int:
        """The JSON documents in a folder, as far as they are whole; how many there are."""
        paths = sorted((self.folder / kind).glob("[!.]*.json"))
        for path in paths:
            try:
                text = path.read_text(encoding="utf-8")
                json.loads(text)
            except ValueError:
                self.missing.append(f"{kind}/{path.name}: it is no whole JSON document")
            else:
                self._write(f"{kind}/{path.name}", text, what)
        return len(paths)

    def _lock(self) -> None:
        """The pinned versions, if all notebooks were executed with them."""
        file = Path(LOCK)
        locks = {record["inputs"][LOCK] for record in self.records.values()}
        if file.is_file() and locks != {records.digest(file.read_bytes())}:
            self.missing.append(f"{LOCK}: it has changed since the notebooks were executed")
        else:
            self._copy(file, LOCK, "Versions of all Python packages, pinned")

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

    def _copy(self, source: Path, path: str, what: str, notebook: str | None = None) -> None:
        if not source.is_file():
            self.missing.append(f"{path}: it is gone")
            return
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, self.root / path)
        self._add(path, what, notebook)

    def _write(self, path: str, text: str, what: str, notebook: str | None = None) -> None:
        """Write what may name folders of the machine."""
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(self._portable(text), encoding="utf-8")
        self._add(path, what, notebook)

    def _add(self, path: str, what: str, notebook: str | None = None) -> None:
        self.files[path] = what
        if notebook:
            self.made_by[notebook].append(path)


def _captions(executed: Path) -> dict[str, str]:
    """The captions of a notebook's figures and tables, by path; none where it has no summary."""
    try:
        return glued(executed).get("captions", {})
    except BenchlibError:
        return {}


def _pack(root: Path, packed: Path) -> None:
    """All files in a zip: in order, and dated alike, so that the same files give the same bytes."""
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(root).as_posix())
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, path.read_bytes())


_README = """\
# Appendix: frameworks compared with benchlib, profile {profile}

| what | it is |
|---|---|
| `report.html`, `report.pdf` | the report: findings, figures, tables, how sure they are; asks nothing of the network |
| `executed/` | each notebook as it was executed, as a page and on paper; its `.json` says with what, and when |
| `notebooks/`, `parameters/` | the notebooks and the parameters that they were executed with |
| `figures/`, `tables/` | every figure as PNG, SVG and PDF, every table as CSV; `measurements.csv` has every process |
| `tables/NOTEBOOK_frame.parquet` | all numbers of a notebook, tidy: a row for one quantity of one condition |
| `measurements/` | the measurements: raw times, seeds, versions, device, knobs |
| `certificates/` | whether two frameworks were shown to run the same model |
| `ceilings/` | the machine's limits, which shares of the peak relate to |
| `requirements.lock`, `pyproject.toml` | the versions of all packages |
| `ro-crate-metadata.json` | all of this for programs (https://w3id.org/ro/crate) |

To get the numbers again: install benchlib with `requirements.lock`, put `parameters/{profile}/` into its `parameters/`,
and run `make report PROFILE={profile}`. `<project>`, `<results>`, `<environment>` and `<home>` stand for folders of the
machine that this was made on.
"""
