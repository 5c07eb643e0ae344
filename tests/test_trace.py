"""From a number back to its measurements."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from synthetic_lab import SyntheticLab

from benchlib import experiments, suite, trace
from benchlib.__main__ import main
from benchlib.errors import BenchlibError
from benchlib.lab import Lab
from benchlib.measure import machine
from benchlib.results import Store

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the results of the notebook operators, with quick's parameters and made-up measurements."""
    folder = tmp_path_factory.mktemp("results")
    parameters = experiments.load("operators", ROOT / "parameters" / "quick" / "operators.yaml")
    experiments.module("operators").measure(parameters, SyntheticLab(folder)).summary()
    return folder


FILES = ["operators_ratios.csv", "operators_ratios.md", "operators.tex", "operators_macros.tex"]


@pytest.mark.parametrize("name", FILES)
def test_every_number_of_a_table_names_files_that_are_there(results: Path, name: str) -> None:
    numbers = trace.numbers(results / "tables" / name)
    assert len(numbers) > 3
    for number in numbers:
        assert number.keys
        assert all((results / "measurements" / f"{key}.parquet").is_file() for key in number.keys)


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_a_figure_names_the_files_that_it_was_drawn_from(results: Path, kind: str) -> None:
    (number,) = trace.numbers(results / "figures" / f"operators_ratios.{kind}")
    assert set(number.keys) == {path.stem for path in (results / "measurements").glob("*.parquet")}


def test_a_macro_leads_to_the_measurements_of_its_condition_and_of_its_baseline(results: Path, tmp_path: Path) -> None:
    copy = shutil.copy(results / "tables" / "operators_macros.tex", tmp_path / "paper.tex")
    name = re.search(r"\\(benchlib\w*Ratios\w*Ratio)\}", Path(copy).read_text())[1]
    (number,) = trace.numbers(Path(copy), f"\\{name}}}")
    measured = [m for key in number.keys for m in Store(results / "measurements").load(key)]
    assert {m.role for m in measured} == {"baseline", "control", "condition"}
    assert len({m.condition.but(framework="pytorch", mode="eager").key for m in measured}) == 1, (
        "one size, one operator"
    )
    assert trace.folder_of(Path(copy)) is None
    assert trace.folder_of(results / "tables" / "operators.tex") == results


def test_a_measurement_says_what_no_longer_matches(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = trace.numbers(results / "tables" / "operators_ratios.csv")[0].keys[0]
    (source,) = trace.sources([key], results)
    for word in ("code has changed", "other versions: mindspore 1.0", "another machine: cpu synthetic"):
        assert word in source.verdict, source.verdict
    assert any("conv2d mindspore" in line for line in source.says)

    monkeypatch.setattr(machine, "code", lambda condition, procedure: "")
    monkeypatch.setattr(machine, "versions", lambda framework: {framework: "1.0"})
    monkeypatch.setattr(machine, "identity", lambda device: {"cpu": "synthetic", "cores": 2})
    assert trace.sources([key], results)[0].verdict == trace.MATCHES


def test_what_cannot_be_read_is_named(results: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(results, tmp_path / "copy")
    key, gone, *_ = trace.numbers(folder / "tables" / "operators_ratios.csv")[0].keys
    path = folder / "measurements" / f"{key}.parquet"
    path.write_bytes(path.read_bytes()[:100])
    (folder / "measurements" / f"{gone}.parquet").unlink()
    cut, missing = trace.sources([key, gone], folder)
    assert "not a whole parquet file" in cut.verdict
    assert "is not there" in missing.verdict


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("none.csv", None, "there is no such file"),
        ("other.csv", "a,b\n1,2\n", "names no measurement"),
        ("notes.txt", "x", "cannot be traced"),
        ("table.md", "| a |", "table.csv beside it"),
    ],
)
def test_what_cannot_be_traced_is_refused(tmp_path: Path, name: str, text: str | None, told: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(BenchlibError, match=told):
        trace.numbers(tmp_path / name)


def test_a_name_that_is_not_there_is_refused_with_one_that_is(results: Path) -> None:
    with pytest.raises(BenchlibError, match="it has, for instance"):
        trace.numbers(results / "tables" / "operators_macros.tex", "benchlibNothing")


def test_certificates_can_be_traced_too(tmp_path: Path) -> None:
    parameters = experiments.load("equivalence", ROOT / "parameters" / "quick" / "equivalence.yaml")
    lab = SyntheticLab(tmp_path)
    result = experiments.module("equivalence").measure(parameters, lab)
    result.summary()
    (tmp_path / "certificates").mkdir()
    (_, certificate), *_ = result.checked
    lab.certificate_path(certificate.condition).write_text(certificate.model_dump_json())
    number = trace.numbers(tmp_path / "tables" / "equivalence_certificates.csv")[0]
    (source,) = trace.sources(number.keys, tmp_path)
    assert source.says[0].startswith("certificate: ")
    assert source.says[0].endswith(": same")
    assert "have changed since" in source.verdict, "this one was made up: its key is not that of what is here"
    real = Lab(outputs=tmp_path).certificate_path(certificate.condition)
    real.write_text(certificate.model_dump_json())
    assert trace.sources([real.stem], tmp_path)[0].verdict == trace.MATCHES


def test_a_lock_that_has_changed_is_said_of_the_notebooks_that_are_traced(tmp_path: Path) -> None:
    lock = (ROOT / "requirements.lock").read_bytes()
    (tmp_path / "notebooks").mkdir()
    for name, made_with in {"modes": lock, "scaling": b"an older one", "operators": b"an older one"}.items():
        files = {"measurements/aa.parquet": ""} if name != "operators" else {"measurements/bb.parquet": ""}
        record = {"inputs": {"requirements.lock": suite.digest(made_with)}, "files": files}
        (tmp_path / "notebooks" / f"{name}.json").write_text(json.dumps(record))
    assert trace.stale(["aa"], tmp_path) == ["scaling: requirements.lock has changed since this notebook was executed"]


def test_the_command_lists_numbers_and_files_and_says_by_its_code_what_has_changed(
    results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = results / "tables" / "operators.tex"
    assert main(["trace", str(file), "conv2d"]) == 1
    said = capsys.readouterr().out
    assert "from " in said
    assert "0 of " in said.splitlines()[-1]
    monkeypatch.setattr(trace, "_changed", lambda measurement: [])
    assert main(["trace", str(file), "conv2d"]) == 0
    assert main(["trace", str(results / "nothing.tex")]) == 2
    assert "there is no such file" in capsys.readouterr().err
