"""The set-up: pyproject.toml, requirements.lock, environment.yml and what is installed say the same."""

import ast
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
SITE = (ROOT / "docs" / "requirements.lock").read_text(encoding="utf-8")
PIN = re.compile(r"^([\w.-]+)==(\S+)$", re.MULTILINE)
PINS = {canonicalize_name(name): version for name, version in PIN.findall(LOCK)}
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
DIRECT = sorted({*PROJECT["dependencies"], *(one for extra in EXTRAS.values() for one in extra)})


@pytest.mark.parametrize("requirement", DIRECT)
def test_the_lock_pins_every_direct_dependency_within_its_bounds(requirement: str):
    wanted = Requirement(requirement)
    assert wanted.specifier.contains(PINS[canonicalize_name(wanted.name)])


def test_every_package_that_is_imported_is_declared():
    declared = {canonicalize_name(Requirement(each).name) for each in DIRECT}
    modules = importlib.metadata.packages_distributions().items()
    brought = {module: {canonicalize_name(name) for name in names} for module, names in modules}
    # Frameworks may have environments of their own, so their files are left out.
    rooms = [path for name in ("frameworks", "workloads") for path in (ROOT / "benchlib" / name).rglob("*.py")]
    scripts = [*(ROOT / "tests").glob("*_session.py")]
    files = {*ROOT.glob("benchlib/**/*.py"), *ROOT.glob("tests/**/*.py")} - {*rooms, *scripts}
    beside = [*(path for path in files if path.is_relative_to(ROOT / "tests")), *scripts, *ROOT.glob("benchmarks/*.py")]
    own = {"benchlib", *sys.stdlib_module_names, *(path.stem for path in beside), "golden"}
    imported = {(path, module) for path in files for module in _imported(path) - own}
    assert {(path, module) for path, module in imported if not brought.get(module, set()) & declared} == set()


def test_the_lock_can_be_installed_anywhere():
    assert not [name for name, version in PINS.items() if Version(version).local], "no index has +cpu"
    for lock in (LOCK, SITE):
        assert not re.search(r"://|--(extra-)?index|--find-links|--trusted-host|^-|file:/| @ ", lock, re.MULTILINE)


def test_the_site_has_a_lock_of_its_own():
    found = dict(PIN.findall(SITE))
    for one in map(Requirement, [*PROJECT["dependencies"], *PYPROJECT["dependency-groups"]["docs"]]):
        assert one.specifier.contains(found[one.name])
    assert {name: version for name, version in found.items() if PINS.get(name, version) != version} == {}


def test_torch_npu_is_not_in_the_default_environment_but_fits_its_torch():
    assert "torch-npu" not in PINS
    ascend = [Requirement(line) for line in _lines(ROOT / "environments" / "ascend.txt")]
    pinned = {str(one.name): str(one.specifier) for one in ascend if one.specifier}
    ours = {"torch": "torch", "torch_npu": "torch", "numpy": "numpy", "PyYAML": "pyyaml"}
    assert pinned == {name: f"=={PINS[own]}" for name, own in ours.items()}


def test_what_is_installed_is_what_the_lock_pins():
    installed = {canonicalize_name(each.name): each.version for each in importlib.metadata.distributions()}
    assert {name: installed.get(name, "").partition("+")[0] for name in PINS} == PINS


def test_conda_users_get_the_lock_and_the_package_and_nothing_else():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    assert environment["name"] == PROJECT["name"]
    assert environment["dependencies"] == ["python=3.11", "pip", {"pip": ["-r requirements.lock", "-e ."]}]
    assert Requirement(f"python{PROJECT['requires-python']}").specifier.contains("3.11.7")


def test_the_citation_names_the_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == PROJECT["version"] == importlib.metadata.version("benchlib")
    assert citation["license"] == PROJECT["license"]


def test_make_refuses_another_python_with_a_clear_message(tmp_path: Path):
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    python = tmp_path / "python3.11"
    python.write_text(
        f"""#!/bin/sh
[ "$1" = -c ] || exit 99
exec {shutil.which("python3")} -c "import sys; sys.version_info = (3, 9, 2); $2"
"""
    )
    python.chmod(0o755)
    result = subprocess.run(["make", "test", f"PYTHON={python}"], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode != 0
    assert re.search(r"is Python 3\.9, but benchlib needs 3\.11 .*: install python3\.11", result.stderr)
    assert not (tmp_path / ".venv").exists()


def test_make_counts_what_pip_has_installed_as_there_once_it_is(tmp_path: Path):
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    made = "#!/bin/sh\\n[ $1 = -m ] && env >> pips; [ $1 = -m ]\\n"
    venv = f"mkdir -p .venv/bin; printf '{made}' > .venv/bin/python; chmod +x .venv/bin/python"
    python = tmp_path / "python3.11"
    python.write_text(f'#!/bin/sh\n[ "$1" = -c ] && exit\n{venv}\n')
    python.chmod(0o755)
    given = {**os.environ, "PIP_TARGET": "/elsewhere", "PIP_DRY_RUN": "1"}
    command = ["make", f"PYTHON={python}", ".venv/.installed"]
    assert subprocess.run(command, cwd=tmp_path, env=given, capture_output=True).returncode != 0
    assert not re.search("PIP_TARGET|PIP_DRY_RUN", (tmp_path / "pips").read_text())
    assert not (tmp_path / ".venv" / ".installed").exists()


def _imported(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 0]
    return {module.partition(".")[0] for module in modules}


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
