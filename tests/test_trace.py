"""From a number back to its measurements."""

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from test_cache import measurement

from benchlib import env_vars, latex, manifest
from benchlib.cache import Measurement, Store, save
from benchlib.cli import main
from benchlib.condition import Condition
from benchlib.equivalence import gate
from benchlib.equivalence.certificate import Certificate
from benchlib.errors import BenchlibError
from benchlib.lab import Lab
from benchlib.paper import trace
from benchlib.provenance import fingerprint, installed, knobs, machine
from benchlib.runner.jobs import prepare_job
from benchlib.worker import files, service

TABLES = ["tables/operators_ratios.csv", "tables/operators.tex", "tables/operators_macros.tex"]
FILES = [*TABLES, "figures/operators_ratios.svg"]
ENDS = {"ratio": [0.31, 1.27], "ratio_low": [0.30, 1.2], "ratio_high": [0.33, 1.3]}
RATIOS = pd.DataFrame({"task": ["conv2d batch 64", "linear batch 8"], **ENDS, "measurements": ["aa11", "aa11 bb22"]})


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The folder of the results of a notebook with two ratios, and its record."""
    folder = tmp_path / "results"
    for file in ("aa11", "bb22"):
        roles = ("baseline", "control", "condition")
        Store(folder / "measurements").save([measurement(file=file, role=role) for role in roles])
    latex.save({"ratios": ("Ratios.", RATIOS)}, folder / "tables", "operators")
    (folder / "figures").mkdir()
    for kind in ("tables", "figures"):
        RATIOS.to_csv(folder / kind / "operators_ratios.csv", index=False)
    for kind in trace.FIGURES:
        (folder / "figures" / f"operators_ratios{kind}").write_text(f"drawn as {kind}")
    made = {path.relative_to(folder).as_posix(): manifest.digest(path.read_bytes()) for path in folder.glob("*/*")}
    (folder / "notebooks").mkdir()
    (folder / "notebooks" / "operators.json").write_text(json.dumps({"status": "succeeded", "files": made}))
    return folder


@pytest.mark.parametrize("name", FILES)
def test_every_number_of_a_file_names_its_measurements(results: Path, name: str) -> None:
    numbers, others = trace.numbers(results / name, results)
    assert others == []
    assert {key for number in numbers for key in number.keys} == {"aa11", "bb22"}
    assert len(numbers) == (1 if name.endswith("svg") else 4 if "macros" in name else 2)
    if "macros" in name:
        (one,), _ = trace.numbers(results / name, results, "\\benchlibOperatorsRatiosConvTwoDBatchSixFourRatio}")
        assert one.keys == ("aa11",)
    with pytest.raises(BenchlibError, match="it has, for instance"):
        trace.numbers(results / name, results, "benchlibNothing")


def test_a_table_that_a_spreadsheet_saved_has_the_same_numbers(results: Path, tmp_path: Path) -> None:
    copy = tmp_path / "operators_ratios.csv"
    for separator, decimal, encoding in ((";", ",", "utf-8-sig"), (";", ".", "utf-8-sig"), ("\t", ",", "utf-16")):
        RATIOS.to_csv(copy, sep=separator, decimal=decimal, index=False, encoding=encoding)
        assert trace.numbers(copy, results) == trace.numbers(results / "tables" / copy.name, results)


def test_a_figure_is_known_by_its_bytes_and_one_that_was_changed_by_its_name(results: Path, tmp_path: Path) -> None:
    for original in (results / "figures").glob("operators_ratios.[sp]*"):
        (number,), others = trace.numbers(Path(shutil.copy(original, tmp_path / f"2{original.suffix}")), results)
        assert (number.keys, others) == (("aa11", "bb22"), [])
        (tmp_path / original.name).write_bytes(original.read_bytes() + b"\n")
        (same,), others = trace.numbers(tmp_path / original.name, results)
        assert (same.keys, len(others)) == (number.keys, 1)


def test_a_measurement_says_what_no_longer_matches(results: Path) -> None:
    (source,) = trace.sources(["aa11"], results)
    for word in ("code has changed", "other versions: ", "another machine: host none"):
        assert word in source.verdict, source.verdict
    assert len(source.says) == 3


@pytest.fixture
def measured(results: Path, monkeypatch: pytest.MonkeyPatch) -> Measurement:
    """A measurement that matches what is here."""
    for name in env_vars.LIBRARIES:
        monkeypatch.delenv(name, raising=False)
    packages = {"numpy": "1.26.4", "sympy": "1.14.0", "six": "1.17.0"}
    here = {(fingerprint, "digest"): "", (machine, "identity"): {"cores": 2}, (installed, "packages"): packages}
    here |= {(installed, "versions"): {"numpy": "1.26.4"}, (installed, "compiler"): {"c++": "g++ 2"}}
    for (module, name), value in here.items():
        monkeypatch.setattr(module, name, lambda *_, value=value: value)
    m = measurement(versions={"numpy": "1.26.4", "onednn": "3.7"}, packages=packages)
    m.knobs = knobs.find(m.condition)
    assert trace._list_changes(m, results) == []
    return m


def test_other_knobs_libraries_and_versions_are_named(measured: Measurement, results: Path, monkeypatch) -> None:
    other = {"packages": {"numpy": "1.26.4", "sympy": "1.13.0", "dill": "0.4"}, "versions": {"c++": "g++ 1"}}
    (versions,) = trace._list_changes(measured.model_copy(update=other), results)
    for what in ("sympy 1.13.0, here 1.14.0", "c++ g++ 1, here g++ 2", "dill 0.4, here none", "six none, here 1.17.0"):
        assert what in versions
    monkeypatch.setattr(knobs, "find", lambda condition: {"NEW": "1"})
    monkeypatch.setenv("LD_LIBRARY_PATH", "/other/libraries")
    of_knobs, libraries = trace._list_changes(measured, results)
    assert "NEW none, here 1" in of_knobs
    assert "LD_LIBRARY_PATH none, here /other/libraries" in libraries


def test_data_and_weights_have_to_be_those_that_the_worker_read(measured: Measurement, tmp_path: Path) -> None:
    job = prepare_job(measured.condition, measured.initial_seed, tmp_path)
    read = {"data_sha256": files.digest(job.data), "weights_file_sha256": service.digest(files.arrays(job.weights))}
    read["order_sha256"] = job.order()
    assert trace._list_changes(measured.model_copy(update={"built": read}), tmp_path) == []
    for name in read:
        (said,) = trace._list_changes(measured.model_copy(update={"built": {**read, name: "other"}}), tmp_path)
        assert "other inputs" in said


@pytest.mark.parametrize("name", FILES)
def test_what_was_edited_by_hand_is_said(results: Path, name: str) -> None:
    with (results / name).open("a") as edited:
        edited.write("\n")
    (said,) = trace.numbers(results / name, results)[1]
    assert said.endswith("differs from the one that operators made")


def test_measurements_that_are_damaged_gone_or_from_elsewhere_are_named(results: Path) -> None:
    store = Store(results / "measurements")
    store.save([m.model_copy(update={"first_step_s": 0.1}) for m in store.load("aa11")])
    store.path("bb22").write_bytes(store.path("bb22").read_bytes()[:100])
    other, cut, gone = trace.sources(["aa11", "bb22", "cc33"], results)
    assert "differs from the one that operators made" in other.verdict
    assert "not a whole parquet file" in cut.verdict
    assert "is not there" in gone.verdict


@pytest.mark.parametrize("name", TABLES)
def test_a_copy_is_traced_by_its_labels_and_what_differs_is_said(results: Path, tmp_path: Path, name: str) -> None:
    (results / "tables" / "._operators.tex").write_bytes(b"\x00\x05\x16\x07\xb0")  # macOS leaves it on other disks
    copy = tmp_path / Path(name).name
    stripped = re.sub(r"% measurements:.*", "%", (results / name).read_text())  # as cleaners of LaTeX leave it
    stripped = stripped.replace(" & ", "    &  ")  # as editors align columns
    copy.write_text(stripped)
    numbers, others = trace.numbers(copy, results)
    assert others == []
    assert numbers == trace.numbers(results / name, results)[0]
    copy.write_text(stripped.replace("0.31", "0.41", 1))
    _, (said, *_) = trace.numbers(copy, results)
    assert "0.41" in said.splitlines()[0]
    assert "0.31" in said.splitlines()[1]
    copy.write_text(re.sub("batch 64|SixFour", "Nine", stripped, count=1))
    assert "nothing has this name" in trace.numbers(copy, results)[1][0]


@pytest.mark.parametrize("name", ["x.csv", "x.tex", "x.svg", "x.txt"])
@pytest.mark.parametrize("content", [None, b"", b"\xff\xfea", b"a,b\n1\n1,2,3,4\n", b"a,b\n1,2\n"])
def test_what_cannot_be_traced_is_refused_by_name(results, tmp_path, name, content, capsys) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert main(["trace", str(tmp_path / name), "--outputs", str(results)]) == 2
    assert str(tmp_path / name) in capsys.readouterr().err


def test_a_certificate_is_traced_too(tmp_path: Path) -> None:
    condition = gate.adapt(Condition(workload="linear"))
    one = Certificate(condition=condition, reference=gate.reference(condition), reason="tried", versions={"torch": "2"})
    real = Lab(outputs=tmp_path).certificate_path(condition)
    save(tmp_path / "certificates" / "other.json", one.model_copy(update={"file": "other"}))
    save(real, one.model_copy(update={"file": real.stem}))
    there, here = trace.sources(["other", real.stem], tmp_path)
    assert "have changed since" in there.verdict
    assert here.verdict == trace.MATCHES
    assert "not checked; torch 2" in here.says[0]
    real.write_text(real.read_text().replace("tried", "other"))
    assert "does not match its hash" in trace.sources([real.stem], tmp_path)[0].verdict


def test_the_exit_code_says_whether_anything_has_changed(results, tmp_path, capsys, monkeypatch) -> None:
    file = results / "tables" / "operators.tex"
    assert main(["trace", str(file), "conv2d"]) == 1
    assert "0 of 1 " in capsys.readouterr().out.splitlines()[-1]
    monkeypatch.setattr(trace, "_list_changes", lambda measurement, inputs: [])
    assert main(["trace", str(file), "conv2d"]) == 0
    copy = tmp_path / "paper.tex"
    copy.write_text(file.read_text().replace("conv2d", "convolution"))
    assert main(["trace", str(copy), "--outputs", str(results)]) == 1
    assert f"{copy} differs from the results:" in capsys.readouterr().out
