"""What can be said of every framework's files without its packages: what they declare, that a workload's files can be
read side by side, and that what they need is pinned. Their sessions are tried in ``test_frameworks.py``.
"""

import ast
import re
from pathlib import Path

import pytest

from benchlib import environments, frameworks, workloads
from benchlib.provenance import knobs, needs

ROOT = Path(__file__).resolve().parent.parent
FRAMEWORKS = frameworks.names()
REFERENCE = min(FRAMEWORKS, key=frameworks.rank)
FILES = [(name, one) for name in workloads.names() for one in workloads.load(name).frameworks() if one != REFERENCE]
PIN = re.compile(r"[\w.-]+(\[[\w,-]+\])?==[\w.]+")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_what_a_framework_declares_can_be_read_without_it(framework: str) -> None:
    offered = frameworks.devices(framework)
    assert "cpu" in offered
    assert set(frameworks.modes(framework)) <= {"eager", "graph", "graph-xla"}
    assert frameworks.precisions(framework)[0] == "fp32"
    assert {need.device for need in needs.declared_needs(framework)} <= set(offered)
    assert frameworks.variables(framework), "records would name none of the variables that it heeds"
    own = knobs.declared_knobs(framework)
    assert all(knob.reason and knob.source for knob in own)
    places = [(knob.name, device) for knob in own for device in knob.devices or offered]
    assert len(set(places)) == len(places), "a ledger has one reason for a knob on a device"


@pytest.mark.parametrize(("name", "framework"), FILES)
def test_a_workloads_files_have_the_same_names_in_the_same_order(name: str, framework: str) -> None:
    expected, found = defined(name, REFERENCE), defined(name, framework)
    assert [one for one in found if one in expected] == [one for one in expected if one in found]
    # An optimizer may take its schedule as an argument; what has no weights may be a function and no part.
    needed = [one for one in expected if one != "schedule" and not one.startswith("_") and "." not in one]
    assert not set(needed) - set(found)


def defined(name: str, framework: str) -> list[str]:
    """Classes, functions and the parts of each model, as ``Model.conv1``, in the order of a workload's file."""
    file = ROOT / "benchlib" / "workloads" / name / f"{framework}.py"
    found = []
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.append(node.name)
        if isinstance(node, ast.ClassDef):
            found += [f"{node.name}.{part}" for part in parts(node)]
    return found


def parts(model: ast.ClassDef) -> list[str]:
    """What a class gives its objects, each name once, in order."""
    statements = [node for node in ast.walk(model) if isinstance(node, ast.Assign | ast.AnnAssign)]
    own = re.compile(r"\bself\.(\w+)")
    targets = [getattr(node, "targets", None) or [node.target] for node in sorted(statements, key=lambda n: n.lineno)]
    return list(dict.fromkeys(name for some in targets for one in some for name in own.findall(ast.unparse(one))))


@pytest.mark.parametrize("file", sorted((ROOT / "environments").glob("*.txt")), ids=lambda file: file.stem)
def test_what_an_environment_is_made_of_is_pinned(file: Path) -> None:
    lines = [line.partition("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines()]
    loose = [line for line in lines if line and not line.startswith("--") and not PIN.fullmatch(line)]
    assert not loose
    assert file.read_text(encoding="utf-8").startswith("# python: ")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_can_be_installed_by_what_is_here(framework: str) -> None:
    lock = re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)
    files = (ROOT / "environments").glob(f"{framework}*.txt")  # perhaps with a version
    made = {name for path in files for name in environments.requirements(path.stem).versions}
    assert {*lock, *made} & set(frameworks.distributions(framework)), f"write environments/{framework}.txt"
