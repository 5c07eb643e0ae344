"""The appendix of a paper: report, executed notebooks and measurements, as a folder and a zip with a manifest.

Nothing is executed or measured. A file that is missing, or that no notebook made so, is named and left out. A stale
result is named, and bundled as it is.
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

from benchlib import manifest
from benchlib.errors import BenchlibError
from benchlib.report.export import export_html
from benchlib.report.pdf import NoBrowser, print_pdf
from benchlib.suite.profile import REPORT, parameter_files
from benchlib.suite.run_lock import hold_lock

LOCK = "requirements.lock"
PROJECT = ("pyproject.toml", "CITATION.cff", "LICENSE")


def make(profile: str, outputs: Path | None, code: bool, paper: str) -> int:
    """Write ``appendix/`` and ``appendix.zip`` into the results of ``profile``; 1 if something is missing in them."""
    folder = outputs or Path("outputs", profile)
    wanted = {*parameter_files(profile), REPORT}
    if not (folder / "notebooks").is_dir():
        raise BenchlibError(f"{folder} has no results: make them with: python -m benchlib run --profile {profile}")
    partial, appendix, packed = folder / ".partial-appendix", folder / "appendix", folder / ".partial-appendix.zip"
    with hold_lock(folder):
        shutil.rmtree(partial, ignore_errors=True)
        try:
            bundle = _Bundle(profile, folder, partial, wanted)
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

    def __init__(self, profile: str, folder: Path, root: Path, wanted: set[str]) -> None:
        self.profile, self.folder, self.root = profile, folder, root
        self.files: dict[str, dict[str, str]] = {}  # for the manifest
        self.missing: list[str] = []
        self.notes: list[str] = []
        every = {**dict.fromkeys(wanted), **manifest.read_all(folder)}
        self.records = {name: one for name, one in sorted(every.items()) if one and one["status"] == "succeeded"}
        for name in sorted(every.keys() - self.records.keys()):
            status = every[name]["status"] if every[name] else "there is no whole record"
            self.missing.append(f"notebooks/{name}.ipynb: {status}")

    def fill(self, code: bool, paper: str) -> None:
        """Write all files, then the README and the manifest."""
        if not self.records:
            raise BenchlibError(f"{self.folder}: no notebook has succeeded: python -m benchlib run")
        wrong = manifest.all_wrong(self.folder)
        for name, record in self.records.items():
            if "stale" in record:
                self.missing.append(f"executed/{name}.ipynb: is an older result, stale: {record['stale']}")
            self._notebook(name, record, code and name != REPORT, paper)
            for path in record["files"]:
                if path in wrong:
                    self.missing.append(f"{path}: it {wrong[path]}")
                else:
                    self._add(path, self.folder / path, name)
        more = [self.folder / "tables" / "measurements.csv"] if REPORT in self.records else []
        for file in [*more, *sorted(self.folder.glob(f"*/{REPORT}_*")), *sorted(self.folder.glob("c*/[!.]*.json"))]:
            self._add(file.relative_to(self.folder).as_posix(), file)  # with certificates and ceilings
        if not any(path.startswith("certificates/") for path in self.files):
            self.missing.append("certificates: there are none")
        for name in PROJECT:
            self._add(name, Path(name))
        lock = manifest.digest(Path(LOCK).read_text(encoding="utf-8")) if Path(LOCK).is_file() else None
        if {record["inputs"].get(LOCK) for record in self.records.values()} == {lock}:
            self._add(LOCK, Path(LOCK))
        else:
            self.missing.append(f"{LOCK}: it has changed since the notebooks were executed")
        lines = "".join(f"- {line}\n" for line in [*self.notes, *self.missing])
        self._add("README.md", _README.format(profile=self.profile) + (f"\n## Missing\n\n{lines}" if lines else ""))
        listed = {"profile": self.profile, "files": dict(sorted(self.files.items())), "notebooks": self.records}
        self._add("manifest.json", json.dumps(listed, indent=1) + "\n")

    def _notebook(self, name: str, record: dict[str, Any], code: bool, paper: str) -> None:
        """An executed notebook with its parameters, as HTML and PDF too."""
        if record["parameters"]:
            text = yaml.safe_dump(record["parameters"], sort_keys=False)
            self._add(f"parameters/{self.profile}/{name}.yaml", text, name)
        source = self.folder / f"notebooks/{name}.ipynb"
        self._add(f"executed/{name}.ipynb", source, name)
        if not source.is_file():
            return
        page = "report" if name == REPORT else f"executed/{name}"
        html, pdf = self.root / f"{page}.html", self.root / f"{page}.pdf"
        try:
            export_html(self.root / f"executed/{name}.ipynb", html, code)
            self._add(f"{page}.html", html, name)
            if not self.notes:
                print_pdf(html, pdf, paper, datetime.fromisoformat(record["started_utc"]))
                self._add(f"{page}.pdf", pdf, name)
        except NoBrowser as error:
            self.notes.append(str(error))
        except (BenchlibError, OSError, ValueError) as error:
            self.missing.append(f"{name}: no page: {error}")
        print(f"{name}: {html.name}", flush=True)

    def _add(self, path: str, content: str | Path, notebook: str = "") -> None:
        """A file of the appendix: a text, or a copy; without the names of this machine's folders."""
        if isinstance(content, Path) and not content.is_file():
            self.missing.append(f"{path}: it is gone")
            return
        written = content.read_bytes() if isinstance(content, Path) else content.encode()
        if path.endswith((".ipynb", ".json", ".yaml")):
            written = self._portable(written.decode(errors="replace")).encode()
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(written)
        self.files[path] = {"notebook": notebook, "sha256": hashlib.sha256(written).hexdigest()}

    def _portable(self, text: str) -> str:
        """Replace the machine's folders by words: of the results, the project, its environment, the user."""
        names = {str(Path(one["interpreter"]).parent.parent): "<environment>" for one in self.records.values()}
        names |= {str(Path.home()): "<home>", str(Path.cwd()): "<project>", str(self.folder.resolve()): "<results>"}
        for folder in sorted(names.keys() - {"/"}, key=len, reverse=True):
            text = re.sub(rf"(?<![\w.-]){re.escape(folder)}(?![\w.-])", names[folder], text)
        return text


_README = """\
# Appendix: frameworks compared with benchlib, profile {profile}

Begin with `report.html`. `manifest.json` says which notebook made each file, and with which parameters, versions and
machine. `measurements/` has the raw times of every process, `tables/measurements.csv` a row for each.

To get the numbers again: install benchlib with `requirements.lock`, put `parameters/{profile}/` into its `parameters/`,
and run `make report PROFILE={profile}`. `<project>`, `<results>` and the like stand for folders of the machine.
"""
