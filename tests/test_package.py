"""The package: a wheel, built from the sdist, in a fresh environment and an empty folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from benchlib import environments

ROOT = Path(__file__).resolve().parents[1]
SDIST = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
TINY = """operators: [{workload: linear, batch_size: 8, hyperparameters: {in_features: 8}, vary: {out_features: [8]}}]
device: cpu
passes: [forward+backward]
subjects: [{framework: pytorch, mode: eager, lane: tuned}, {framework: mindspore, mode: eager, lane: tuned}]
"""


def install(folder: Path) -> str:
    """Install wheel and extras in an environment that has nothing of the checkout; its command ``benchlib``."""
    source = shutil.copytree(ROOT, folder / "source", ignore=shutil.ignore_patterns(".*", "build", "outputs"))
    subprocess.run([sys.executable, "-c", SDIST, str(folder)], cwd=source, check=True, capture_output=True)
    build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", *build, *map(str, folder.glob("*.tar.gz"))], check=True)
    (wheel,), new = folder.glob("*.whl"), str(folder / "new")
    uv, given = shutil.which("uv", path=Path(sys.executable).parent), environments._uv_env()
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, new], check=True, env=given)
    pins = ["--constraint", str(ROOT / "requirements.lock"), f"{wheel}[suite,data,pytorch,mindspore]"]
    subprocess.run([uv, "pip", "install", "--quiet", "--python", new, *pins], check=True, env=given)
    return f"{new}/bin/benchlib"


@pytest.mark.slow
@pytest.mark.alone
def test_the_wheel_measures_in_an_empty_folder_and_init_writes_what_can_be_changed(tmp_path: Path) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        given = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "BENCHLIB"))}
        ended = subprocess.run([command, *arguments], cwd=here, env=given, capture_output=True, text=True)
        return ended.returncode, ended.stdout + ended.stderr

    command, here = install(tmp_path), tmp_path / "here"
    (here / "parameters" / "tiny").mkdir(parents=True)
    (here / "parameters" / "tiny" / "operators.yaml").write_text(TINY)
    code, said = run("run", "--profile", "tiny", "--set", "operators.settings={budget_s: 1.0}")
    assert code == 0, said
    ratios = pd.read_csv(here / "outputs" / "tiny" / "tables" / "report_ratios.csv")
    assert (ratios["ratio"] > 0).sum() == 4
    shutil.rmtree(here / "parameters")
    code, said = run("run", "--minutes", "0")
    assert (code, "modes: failed" in said) == (1, True), "quick's own parameters are there, and no measurement"
    assert run("init")[0] == 0
    assert {path.name for path in here.glob("*/*.ipynb")} == {path.name for path in ROOT.glob("notebooks/*.ipynb")}
    (here / "parameters" / "quick" / "modes.yaml").write_text("mine")
    assert "parameters/: is there" in run("init")[1]
    assert (here / "parameters" / "quick" / "modes.yaml").read_text() == "mine"
