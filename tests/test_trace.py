"""From a number back to its measurements."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from synthetic_lab import SyntheticLab

from benchlib import records, variables
from benchlib.__main__ import main
from benchlib.errors import BenchlibError
from benchlib.lab import Lab
from benchlib.provenance import fingerprint, installed, knobs, machine
from benchlib.runner.jobs import prepare_job
from benchlib.store import Measurement, Store, save
from benchlib.suite import experiments, sources, trace
from benchlib.worker import files, service

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the results of the notebook operators, with quick's parameters and made-up measurements."""
    folder = tmp_path_factory.mktemp("results")
    parameters = experiments.load("operators", ROOT / "parameters" / "quick" / "operators.yaml")
    experiments.module("operators").measure(parameters, SyntheticLab(folder)).summary()
    return folder


TABLES = ["tables/operators_ratios.csv", "tables/operators.tex", "tables/operators_macros.tex"]
FILES = [*TABLES, "figures/operators_ratios.svg"]


def a_key(results: Path) -> str:
    return trace.numbers(results / "tables" / "operators_ratios.csv", results)[0][0].keys[0]


@pytest.mark.parametrize("name", FILES)
def test_every_number_of_a_table_names_files_that_are_there(results: Path, name: str) -> None:
    numbers, others = trace.numbers(results / name, results)
    assert others == []
    assert len(numbers) >= len(pd.read_csv(results / "tables" / "operators_ratios.csv")) > 1 or name.endswith("svg")
    for number in numbers:
        assert number.keys
        assert all((results / "measurements" / f"{key}.parquet").is_file() for key in number.keys)


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_a_figure_is_known_by_its_bytes_and_one_that_was_changed_by_its_name(
    results: Path, tmp_path: Path, kind: str
) -> None:
    original = results / "figures" / f"operators_ratios.{kind}"
    (number,), others = trace.numbers(Path(shutil.copy(original, tmp_path / f"figure2.{kind}")), results)
    rows, _ = trace.numbers(original.with_suffix(".csv"), results)
    assert others == []
    assert set(number.keys) == {key for row in rows for key in row.keys} != set()
    changed = tmp_path / original.name
    changed.write_bytes(original.read_bytes() + b"\n")
    (same,), others = trace.numbers(changed, results)
    assert same.keys == number.keys
    assert len(others) == 1


def test_a_macro_leads_to_the_measurements_of_its_condition_and_of_its_baseline(results: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(results / "tables" / "operators_macros.tex", tmp_path / "paper.tex"))
    name = re.search(r"\\(benchlib\w*Ratio)\}", copy.read_text())[1]
    (number,), others = trace.numbers(copy, results, f"\\{name}}}")
    assert others == []
    measured = [m for key in number.keys for m in Store(results / "measurements").load(key)]
    assert {m.role for m in measured} == {"baseline", "control", "condition"}
    assert len({m.condition.but(framework="pytorch", mode="eager").key for m in measured}) == 1, "one operator and size"
    assert trace.folder_of(copy) is None
    assert trace.folder_of(results / "tables" / "operators.tex") == results


def test_a_measurement_says_what_no_longer_matches(results: Path) -> None:
    (source,) = sources.sources([a_key(results)], results)
    assert "knobs" not in source.verdict
    for word in ("code has changed", "other versions: mindspore 1.0", "another machine: cpu synthetic"):
        assert word in source.verdict, source.verdict
    assert any("conv2d mindspore" in line for line in source.says)


@pytest.fixture
def measured(results: Path, monkeypatch: pytest.MonkeyPatch) -> Measurement:
    """A measurement that matches what is here."""
    for name in variables.LIBRARIES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(fingerprint, "digest", lambda condition, procedure: "")
    monkeypatch.setattr(machine, "identity", lambda device: {"cpu": "synthetic", "cores": 2})
    monkeypatch.setattr(installed, "packages", lambda *_: {"numpy": "1.26.4", "sympy": "1.14.0", "six": "1.17.0"})
    monkeypatch.setattr(installed, "versions", lambda *_: {"numpy": "1.26.4"})
    monkeypatch.setattr(installed, "compiler", lambda condition: {"c++": "g++ 2"})
    m = Store(results / "measurements").load(a_key(results))[0]
    packages = {"numpy": "1.26.4", "sympy": "1.14.0", "six": "1.17.0"}
    m = m.model_copy(update={"versions": {"numpy": "1.26.4", "onednn": "3.7"}, "packages": packages})
    assert sources._changed(m, results) == []
    return m


def test_other_knobs_libraries_and_versions_are_named(
    measured: Measurement, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {"packages": {"numpy": "1.26.4", "sympy": "1.13.0", "dill": "0.4"}, "versions": {"c++": "g++ 1"}}
    assert sources._changed(measured.model_copy(update=other), results) == [
        "other versions: sympy 1.13.0, here 1.14.0, c++ g++ 1, here g++ 2, dill 0.4, here none, six none, here 1.17.0"
    ]
    monkeypatch.setattr(knobs, "of", lambda condition: {"NEW": "1"})
    monkeypatch.setenv("LD_LIBRARY_PATH", "/other/libraries")
    monkeypatch.setenv(variables.WORKER_PATH, str(results))
    of_knobs, libraries = sources._changed(measured, results)
    assert "NEW none, here 1" in of_knobs
    assert libraries.startswith("other libraries: LD_LIBRARY_PATH none, here /other/libraries")
    assert f"{variables.WORKER_FILES} none, here " in libraries


@pytest.mark.parametrize("name", ["data_sha256", "weights_file_sha256", "order_sha256"])
def test_data_and_weights_have_to_be_those_that_the_worker_read(
    measured: Measurement, tmp_path: Path, name: str
) -> None:
    job = prepare_job(measured.condition, measured.initial_seed, tmp_path)
    read = {"data_sha256": files.digest(job.data), "weights_file_sha256": service.digest(files.arrays(job.weights))}
    read["order_sha256"] = job.order()
    assert sources._changed(measured.model_copy(update={"built": read}), tmp_path) == []
    (said,) = sources._changed(measured.model_copy(update={"built": {**read, name: "other"}}), tmp_path)
    assert "changed since" in said


@pytest.fixture
def recorded(results: Path, tmp_path: Path) -> Path:
    """A copy of the results with the record of their notebook."""
    folder = shutil.copytree(results, tmp_path / "recorded")
    paths = [path for kind in ("tables", "figures", "measurements") for path in (folder / kind).iterdir()]
    made = {path.relative_to(folder).as_posix(): records.digest(path.read_bytes()) for path in paths}
    (folder / "notebooks").mkdir()
    (folder / "notebooks" / "operators.json").write_text(json.dumps({"status": "succeeded", "files": made}))
    return folder


@pytest.mark.parametrize("name", FILES)
def test_what_was_edited_by_hand_is_said(recorded: Path, name: str) -> None:
    assert trace.numbers(recorded / name, recorded)[1] == []
    with (recorded / name).open("a") as edited:
        edited.write("\n")
    (said,) = trace.numbers(recorded / name, recorded)[1]
    assert said.endswith("is not what operators made")


def test_a_measurement_that_was_put_there_from_elsewhere_is_said(recorded: Path) -> None:
    key = a_key(recorded)
    store = Store(recorded / "measurements")
    assert "is not what" not in sources.sources([key], recorded)[0].verdict
    store.save([m.model_copy(update={"first_step_s": 0.1}) for m in store.load(key)])
    assert "is not what operators made" in sources.sources([key], recorded)[0].verdict


@pytest.mark.parametrize("name", TABLES)
def test_a_copy_is_traced_by_its_labels_and_what_differs_is_said(results: Path, tmp_path: Path, name: str) -> None:
    (results / "tables" / "._operators.tex").write_bytes(b"\x00\x05\x16\x07\xb0")  # macOS leaves it on other disks
    copy = tmp_path / Path(name).name
    stripped = re.sub(r"% measurements:.*", "%", (results / name).read_text())  # as cleaners of LaTeX leave it
    copy.write_text(stripped)
    numbers, others = trace.numbers(copy, results)
    assert others == []
    assert numbers == trace.numbers(results / name, results)[0]
    copy.write_text(re.sub(r"0\.3(?=\d)", "0.4", stripped, count=1))
    _, (said, *_) = trace.numbers(copy, results)
    assert "0.4" in said.splitlines()[0]
    assert "0.3" in said.splitlines()[1]
    copy.write_text(re.sub("batch 64|SixFour", "Nine", stripped, count=1))
    assert "nothing has this name" in trace.numbers(copy, results)[1][0]


@pytest.mark.parametrize(("separator", "decimal"), [(";", ","), (";", "."), ("\t", ",")])
def test_a_table_that_a_spreadsheet_has_saved_is_traced_as_the_original(
    results: Path, tmp_path: Path, separator: str, decimal: str
) -> None:
    original = results / "tables" / "operators_ratios.csv"
    copy = tmp_path / original.name
    pd.read_csv(original).to_csv(copy, sep=separator, decimal=decimal, encoding="utf-8-sig", index=False)
    assert trace.numbers(copy, results) == trace.numbers(original, results)


@pytest.mark.parametrize("suffix", [".csv", ".tex", ".svg"])
@pytest.mark.parametrize("content", [b"", b"\xff\xfea", b"\x81\x00", b"a,b\n1\n1,2,3,4\n"])
def test_what_is_no_such_file_is_refused_in_a_sentence(
    results: Path, tmp_path: Path, suffix: str, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / f"x{suffix}"
    file.write_bytes(content)
    assert main(["trace", str(file), "--outputs", str(results)]) == 2
    assert str(file) in capsys.readouterr().err


def test_what_cannot_be_read_is_named(results: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(results, tmp_path / "copy")
    key, gone, *_ = trace.numbers(folder / "tables" / "operators_ratios.csv", folder)[0][0].keys
    path = folder / "measurements" / f"{key}.parquet"
    path.write_bytes(path.read_bytes()[:100])
    (folder / "measurements" / f"{gone}.parquet").unlink()
    cut, missing = sources.sources([key, gone], folder)
    assert "not a whole parquet file" in cut.verdict
    assert "is not there" in missing.verdict


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("none.csv", None, "there is no such file"),
        ("other.csv", "a,b\n1,2\n", "no measurement under the names"),
        ("notes.txt", "x", "cannot be traced: give a file that ends in .csv"),
    ],
)
def test_what_cannot_be_traced_is_refused(
    results: Path, tmp_path: Path, name: str, text: str | None, told: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(BenchlibError, match=told):
        trace.numbers(tmp_path / name, results)


def test_a_name_that_is_not_there_is_refused_with_one_that_is(results: Path) -> None:
    with pytest.raises(BenchlibError, match="it has, for instance"):
        trace.numbers(results / "tables" / "operators_macros.tex", results, "benchlibNothing")


def test_certificates_can_be_traced_too(tmp_path: Path) -> None:
    parameters = experiments.load("equivalence", ROOT / "parameters" / "quick" / "equivalence.yaml")
    lab = SyntheticLab(tmp_path)
    result = experiments.module("equivalence").measure(parameters, lab)
    result.summary()
    (_, certificate), *_ = result.checked
    save(lab.certificate_path(certificate.condition), certificate)
    number = trace.numbers(tmp_path / "tables" / "equivalence_certificates.csv", tmp_path)[0][0]
    (source,) = sources.sources(number.keys, tmp_path)
    assert source.says[0].startswith("certificate: ")
    assert ": same; " in source.says[0]
    assert source.says[0].endswith("1.0; benchlib 1.0 synthetic")
    assert "have changed since" in source.verdict, "this one was made up: its key is not that of what is here"
    real = Lab(outputs=tmp_path).certificate_path(certificate.condition)
    save(real, certificate.model_copy(update={"file": real.stem}))
    assert sources.sources([real.stem], tmp_path)[0].verdict == sources.MATCHES
    real.write_text(real.read_text().replace('"tolerance": 1e-05', '"tolerance": 1.0'))
    assert "does not match its hash" in sources.sources([real.stem], tmp_path)[0].verdict


def test_the_command_lists_numbers_and_files_and_says_by_its_code_what_has_changed(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = results / "tables" / "operators.tex"
    assert main(["trace", str(file), "conv2d"]) == 1
    said = capsys.readouterr().out
    assert "from " in said
    assert "0 of " in said.splitlines()[-1]
    monkeypatch.setattr(sources, "_changed", lambda measurement, inputs: [])
    assert main(["trace", str(file), "conv2d"]) == 0
    copy = tmp_path / "paper.tex"
    copy.write_text(file.read_text().replace("conv2d", "convolution"))
    assert main(["trace", str(copy), "--outputs", str(results)]) == 1
    assert f"{copy} is not what the results say:" in capsys.readouterr().out
    assert main(["trace", str(results / "nothing.tex")]) == 2
    assert "there is no such file" in capsys.readouterr().err
