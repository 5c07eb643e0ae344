"""Notebooks as the start page opens them: copies beside a profile's results, with its parameters in their parameters
cell. The notebooks of the project stay as they are.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from benchlib.suite import records
from benchlib.suite.experiments import parameter_file
from benchlib.suite.plan import sources

FOLDER = "lab"
"""In a folder of results."""

OWN = "quick"
"""The profile whose parameters stand in the project's notebooks; where no other folder is said, it is measured into its
folder.
"""

WIDTH = 110  # of a line of parameters


def copy(notebook: Path, file: Path | None, profile: str) -> tuple[Path, bool]:
    """The copy of a notebook with the parameters in ``file``: its path, and whether somebody has changed its cells, in
    which case it is as they left it. Outputs are no change.
    """
    sources(notebook)  # which refuses one that has no cell for them
    path = Path("outputs", profile, FOLDER, notebook.name)
    wanted = json.loads(notebook.read_text(encoding="utf-8"))
    values = parameter_file.read(file) if file else {}
    if profile != OWN:
        values["outputs"] = f"../../{profile}"  # from where the copy's kernel starts
    for cell in wanted["cells"]:
        if "parameters" in cell["metadata"].get("tags", []):
            cell["source"] = with_values("".join(cell["source"]), values)
    digest = _digest(wanted)
    if path.exists():
        there = _read(path)
        before = there.get("metadata", {}).get("benchlib")
        if before != _digest(there):
            return path, True
        if before == digest:
            return path, False
    wanted["metadata"]["benchlib"] = digest
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(wanted, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return path, False


def with_values(source: str, values: dict[str, Any]) -> str:
    """A parameters cell with other values: only what differs is written anew, so that comments stay."""
    lines = source.encode().splitlines(keepends=True)  # as ast counts: bytes
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    code, new = source.encode(), dict(values)
    for node in reversed(ast.parse(source).body):
        name = node.targets[0].id
        value = new.pop(name, ast.literal_eval(node.value))
        if value != ast.literal_eval(node.value):
            start = starts[node.value.lineno - 1] + node.value.col_offset
            end = starts[node.value.end_lineno - 1] + node.value.end_col_offset
            code = code[:start] + literal(value).encode() + code[end:]
    return "\n".join([code.decode(), *(f"{name} = {literal(value)}" for name, value in new.items())])


def literal(value: Any, indent: int = 0) -> str:
    """A plain value as Python has it; lists and mappings that are long get a line for each of what is in them."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (list, dict)):
        return repr(value)
    inner = indent + 4
    if isinstance(value, list):
        first, parts, last = "[", [literal(one, inner) for one in value], "]"
    else:
        parts = [f"{literal(name)}: {literal(one, inner)}" for name, one in value.items()]
        first, last = "{", "}"
    line = first + ", ".join(parts) + last
    if "\n" not in line and indent + len(line) <= WIDTH:
        return line
    return f"{first}\n" + "".join(f"{' ' * inner}{part},\n" for part in parts) + " " * indent + last


def _read(path: Path) -> dict[str, Any]:
    """A notebook as it lies there; empty where it is none, which is for its owner to mend."""
    try:
        there = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return {}
    return there if isinstance(there, dict) else {}


def _digest(notebook: dict[str, Any]) -> str:
    """Of the cells without their outputs."""
    return records.digest([[cell["cell_type"], "".join(cell["source"])] for cell in notebook.get("cells", [])])
