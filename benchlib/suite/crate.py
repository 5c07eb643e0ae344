"""The metadata of an appendix for archives and programs: a Process Run Crate (https://w3id.org/ro/wfrun/process).

It says what each file is, which notebook made it from which parameters, when, and with which versions. People are those
of ``CITATION.cff``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from rocrate.model.contextentity import ContextEntity
from rocrate.rocrate import ROCrate

ROCRATE = "1.1"  # the version that the profile below is made for
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"

FORMATS = {
    ".cff": "application/yaml",
    ".csv": "text/csv",
    ".html": "text/html",
    ".ipynb": "application/x-ipynb+json",
    ".json": "application/json",
    ".md": "text/markdown",
    ".parquet": "application/vnd.apache.parquet",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".tex": "application/x-tex",
    ".toml": "application/toml",
    ".yaml": "application/yaml",
}


def write_crate(
    root: Path,
    profile: str,
    files: Mapping[str, str],
    records: Mapping[str, Mapping[str, Any]],
    results: Mapping[str, list[str]],
) -> None:
    """Write ``root/ro-crate-metadata.json``: ``files`` are described in words, ``records`` are those of the notebooks
    that made them, ``results`` what each made. The same arguments give the same bytes.
    """
    crate = ROCrate(version=ROCRATE)
    entities = {path: _file(crate, root, path, description) for path, description in sorted(files.items())}
    root_entity = crate.root_dataset
    crate.name = f"Deep-learning frameworks compared with benchlib, profile {profile}"
    crate.description = (
        "Report, executed notebooks, figures, tables and measurements of a comparison of deep-learning frameworks, "
        "with the parameters and versions that they were made with."
    )
    crate.datePublished = max(record["started_utc"] for record in records.values())
    citation = _citation(root)
    if licence := citation.get("license"):
        crate.license = _add(crate, f"https://spdx.org/licenses/{licence}", "CreativeWork", name=licence)
    if authors := [_author(crate, author) for author in citation.get("authors", [])]:
        root_entity["author"] = authors
    if "keywords" in citation:
        crate.keywords = citation["keywords"]
    root_entity["conformsTo"] = _add(crate, PROFILE, "CreativeWork", name="Process Run Crate", version="0.5")
    benchlib = _benchlib(crate, citation, records)
    root_entity["mentions"] = [
        _action(crate, entities, benchlib, profile, name, record, results[name]) for name, record in records.items()
    ]
    crate.metadata.write(root)


def _file(crate: ROCrate, root: Path, path: str, description: str) -> Any:
    properties = {
        "name": Path(path).name,
        "description": description,
        "encodingFormat": FORMATS.get(Path(path).suffix, "text/plain"),
        "contentSize": str((root / path).stat().st_size),
    }
    if path.startswith("notebooks/"):
        properties |= {"@type": ["File", "SoftwareSourceCode"], "programmingLanguage": "Python"}
    return crate.add_file(root / path, path, properties=properties)


def _action(
    crate: ROCrate,
    entities: Mapping[str, Any],
    benchlib: Any,
    profile: str,
    name: str,
    record: Mapping[str, Any],
    results: list[str],
) -> Any:
    """The execution of a notebook."""
    start = datetime.fromisoformat(record["started_utc"])
    machine = ", ".join(f"{key} {value}" for key, value in record["machine"].items() if value not in ([], ""))
    notebook, used = entities.get(f"notebooks/{name}.ipynb"), [f"parameters/{profile}/{name}.yaml", "requirements.lock"]
    action = _add(
        crate,
        f"#execution-of-{name}",
        "CreateAction",
        name=f"Execution of the notebook {name}",
        description=f"On: {machine}",
        startTime=start.isoformat(),
        endTime=(start + timedelta(seconds=record["seconds"])).isoformat(),
        actionStatus="http://schema.org/CompletedActionStatus",
    )
    action["instrument"] = [notebook, benchlib] if notebook else benchlib
    action["object"] = [entities[path] for path in used if path in entities]
    action["result"] = [entities[path] for path in sorted(results)]
    return action


def _benchlib(crate: ROCrate, citation: Mapping[str, Any], records: Mapping[str, Mapping[str, Any]]) -> Any:
    """The software, with the frameworks and what they ran on: each version that a notebook's record names."""
    version = next(iter(records.values()))["versions"].get("benchlib", citation.get("version"))
    versions = dict.fromkeys(pair for record in records.values() for pair in _versions(record))
    software = _add(crate, "#benchlib", "SoftwareApplication", name="benchlib", softwareVersion=version)
    software["softwareRequirements"] = [
        _add(crate, f"#{name}-{number}", "SoftwareApplication", name=name, softwareVersion=number)
        for name, number in sorted(versions)
    ]
    return software


def _versions(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "python", record["versions"]["python"]
    for versions in record["frameworks"].values():
        yield from versions.items()


def _author(crate: ROCrate, author: Mapping[str, str]) -> Any:
    person = " ".join(author[part] for part in ("given-names", "family-names") if part in author)
    name = person or author["name"]
    identifier = author.get("orcid") or f"#{name.lower().replace(' ', '-')}"
    return _add(crate, identifier, "Person" if person else "Organization", name=name)


def _citation(root: Path) -> dict[str, Any]:
    file = root / "CITATION.cff"
    return yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}


def _add(crate: ROCrate, identifier: str, kind: str, **properties: Any) -> Any:
    return crate.add(ContextEntity(crate, identifier, properties={"@type": kind, **properties}))
