"""From a number back to its measurements."""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from synthetic_lab import SyntheticLab

from benchlib import knobs, variables
from benchlib.__main__ import main
from benchlib.errors import BenchlibError
from benchlib.lab import Lab
from benchlib.measure import installed, machine, own_code
from benchlib.measure.jobs import prepare_job
from benchlib.store import Store, save
from benchlib.suite import experiments, records, sources, trace
from benchlib.worker import files, service

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
    text = (results / "tables" / "operators.tex").read_text()
    shown = [path for path in (results / "tables").glob("*.csv") if f"tab:{path.stem.replace('_', '-')}" in text]

    def parts(label: str) -> int:
        """A wide table becomes several, each with all its rows."""
        return len(re.findall(rf"\\label{{tab:{label}(?:-\d)?}}", text))

    counts = {
        "operators_ratios.csv": len(pd.read_csv(results / "tables" / "operators_ratios.csv")),
        "operators_ratios.md": len(pd.read_csv(results / "tables" / "operators_ratios.csv")),
        "operators.tex": sum(len(pd.read_csv(path)) * parts(path.stem.replace("_", "-")) for path in shown),
        "operators_macros.tex": (results / "tables" / "operators_macros.tex").read_text().count("\\newcommand"),
    }
    assert len(numbers) == counts[name] > 3
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
    assert number.says.startswith(f"\\newcommand{{\\{name}}}{{")
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
    assert "knobs" not in source.verdict
    for word in ("code has changed", "other versions: mindspore 1.0", "another machine: cpu synthetic"):
        assert word in source.verdict, source.verdict
    assert any("conv2d mindspore" in line for line in source.says)

    for name in variables.LIBRARIES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(own_code, "digest", lambda condition, procedure: "")
    monkeypatch.setattr(installed, "versions", lambda framework, environment="default": {framework: "1.0"})
    monkeypatch.setattr(machine, "identity", lambda device: {"cpu": "synthetic", "cores": 2})
    assert trace.sources([key], results)[0].verdict == trace.MATCHES
    monkeypatch.setattr(knobs, "of", lambda condition: {"NEW": "1"})
    said = trace.sources([key], results)[0].verdict
    assert said.startswith("other knobs: ")
    assert "NEW not set, here 1" in said
    assert "OMP_NUM_THREADS" not in said or "here not set" in said
    monkeypatch.setenv("LD_LIBRARY_PATH", "/other/libraries")
    assert "other libraries: LD_LIBRARY_PATH not set, here /other/libraries" in trace.sources([key], results)[0].verdict
    monkeypatch.setenv(variables.WORKER_PATH, str(results))
    assert f"{variables.WORKER_FILES} not set, here " in trace.sources([key], results)[0].verdict


def test_a_measurement_says_that_the_compiler_is_another(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = trace.numbers(results / "tables" / "operators_ratios.csv")[0].keys[0]
    m = Store(results / "measurements").load(key)[0]
    monkeypatch.setattr(installed, "versions", lambda framework, environment="default": {"torch": "2.13"})
    monkeypatch.setattr(installed, "compiler", lambda condition: {"c++": "g++ 2"})
    measured = m.model_copy(update={"versions": {"torch": "2.13", "c++": "g++ 1"}, "packages": {}})
    assert sources._other_versions(measured) == ["other versions: c++ g++ 1, here g++ 2"]


def test_every_package_that_it_could_compute_with_has_to_be_what_is_here(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = trace.numbers(results / "tables" / "operators_ratios.csv")[0].keys[0]
    m = Store(results / "measurements").load(key)[0]
    versions, packages = {"numpy": "1.26.4"}, {"numpy": "1.26.4", "sympy": "1.14.0", "six": "1.17.0"}
    monkeypatch.setattr(installed, "versions", lambda framework, environment="default": versions)
    monkeypatch.setattr(installed, "packages", lambda framework, workload, environment="default": packages)
    measured = m.model_copy(update={"versions": {**versions, "onednn": "3.7"}, "packages": packages})
    assert sources._other_versions(measured) == []
    assert sources._other_versions(measured.model_copy(update={"versions": {}})) == [], "its worker did not even open"
    other = measured.model_copy(update={"packages": {"numpy": "1.26.4", "sympy": "1.13.0", "dill": "0.4"}})
    assert sources._other_versions(other) == [
        "other versions: sympy 1.13.0, here 1.14.0, dill 0.4, here not there, six not there, here 1.17.0"
    ]


@pytest.mark.parametrize("name", ["data_sha256", "weights_file_sha256", "order_sha256"])
def test_data_and_weights_have_to_be_those_that_the_worker_read(results: Path, tmp_path: Path, name: str) -> None:
    key = trace.numbers(results / "tables" / "operators_ratios.csv")[0].keys[0]
    m = Store(results / "measurements").load(key)[0]
    job = prepare_job(m.condition, m.initial_seed, tmp_path)
    read = {"data_sha256": files.digest(job.data), "weights_file_sha256": service.digest(files.arrays(job.weights))}
    read["order_sha256"] = job.order()
    assert sources._other_inputs(m.model_copy(update={"built": read}), tmp_path) == []
    (said,) = sources._other_inputs(m.model_copy(update={"built": {**read, name: "other"}}), tmp_path)
    assert "are others" in said or "is another" in said
    tuned = m.model_copy(update={"built": read, "condition": m.condition.but(lane="default", threads=1)})
    assert sources._other_inputs(tuned, tmp_path) == [], "which makes no difference to them"


def test_a_row_of_a_latex_table_has_its_tables_name_and_reads_as_on_paper(results: Path) -> None:
    says = [number.says for number in trace.numbers(results / "tables" / "operators.tex")]
    shown = (
        r"operators ratios: workload conv2d, size batch 64, .*, throughput ratio 0\.\d+ \[[\d., ]+\], processes 5, .*"
    )
    assert any(re.fullmatch(shown, line) for line in says), says[:3]
    assert not any(mark in line for line in says for mark in "&{}\\")


def test_what_names_no_measurement_is_not_left_out(results: Path, tmp_path: Path) -> None:
    text = (results / "tables" / "operators_macros.tex").read_text()
    (tmp_path / "x.tex").write_text(text + "\\newcommand{\\benchlibOther}{7}\n")
    assert trace.numbers(tmp_path / "x.tex", "Other") == [
        trace.Number("\\newcommand{\\benchlibOther}{7}", (), "\\benchlibOther")
    ]


@pytest.fixture
def recorded(results: Path, tmp_path: Path) -> Path:
    """A copy of the results with the record of their notebook."""
    folder = shutil.copytree(results, tmp_path / "recorded")
    paths = [path for kind in ("tables", "figures", "measurements") for path in (folder / kind).iterdir()]
    made = {path.relative_to(folder).as_posix(): records.digest(path.read_bytes()) for path in paths}
    (folder / "notebooks").mkdir()
    (folder / "notebooks" / "operators.json").write_text(json.dumps({"status": "succeeded", "files": made}))
    return folder


@pytest.mark.parametrize("name", [*FILES, "operators_ratios.svg"])
def test_what_was_edited_by_hand_is_said(recorded: Path, name: str) -> None:
    file = recorded / ("figures" if name.endswith("svg") else "tables") / name
    assert trace.differences(file, trace.numbers(file), recorded) == []
    with (file.with_suffix(".csv") if name.endswith("md") else file).open("a") as edited:
        edited.write("\n")
    (said,) = trace.differences(file, trace.numbers(file), recorded)
    assert said.endswith("is not what operators made")


def test_a_measurement_that_was_put_there_from_elsewhere_is_said(recorded: Path) -> None:
    key = trace.numbers(recorded / "tables" / "operators_ratios.csv")[0].keys[0]
    store = Store(recorded / "measurements")
    assert "is not what" not in trace.sources([key], recorded)[0].verdict
    store.save([m.model_copy(update={"first_step_s": 0.1}) for m in store.load(key)])
    assert "is not what operators made" in trace.sources([key], recorded)[0].verdict


@pytest.mark.parametrize("name", ["operators.tex", "operators_macros.tex", "operators_ratios.csv"])
def test_a_copy_of_other_results_says_which_numbers_differ(results: Path, tmp_path: Path, name: str) -> None:
    original = (results / "tables" / name).read_text()
    copy = tmp_path / name
    copy.write_text(original)
    (results / "tables" / "._operators.tex").write_bytes(b"\x00\x05\x16\x07\xb0")  # macOS leaves it on other disks
    assert trace.differences(copy, trace.numbers(copy), results) == []
    lines = original.splitlines()
    key = trace.numbers(copy)[0].keys[0]
    at = next(i for i, line in enumerate(lines) if key in line)

    copy.write_text("\n".join([*lines[:at], lines[at].replace("0.3", "0.4", 1), *lines[at + 1 :]]))
    (said,) = trace.differences(copy, trace.numbers(copy), results)
    assert "0.4" in said.splitlines()[0]
    assert "0.3" in said.splitlines()[1]
    copy.write_text("\n".join([*lines[:at], lines[at].replace(key, key[::-1]), *lines[at + 1 :]]))
    (said,) = trace.differences(copy, trace.numbers(copy), results)
    assert "is made from other measurements in" in said
    copy.write_text("\n".join([*lines[:at], re.sub("batch 64|SixFour", "Nine", lines[at]), *lines[at + 1 :]]))
    (said,) = trace.differences(copy, trace.numbers(copy), results)
    assert "is in no table of" in said


def test_a_copy_of_a_figure_is_compared_as_a_whole(results: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(results / "figures" / "operators_ratios.svg", tmp_path))
    assert trace.differences(copy, trace.numbers(copy), results) == []
    copy.write_text(copy.read_text() + "\n")
    assert len(trace.differences(copy, trace.numbers(copy), results)) == 1


STRIPPED = {  # what cleaners leave of a line's comment, and what is called how
    "operators.tex": lambda text: re.sub(r" % measurements:.*", " %", text),
    "operators_macros.tex": lambda text: re.sub(r" % measurements:.*", "", text),
    "operators_ratios.csv": lambda text: (
        pd.read_csv(io.StringIO(text)).drop(columns="measurements").to_csv(index=False)
    ),
}


@pytest.mark.parametrize("name", STRIPPED)
def test_a_copy_without_its_keys_is_traced_by_its_names(
    results: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    original = results / "tables" / name
    copy = tmp_path / name
    copy.write_text(STRIPPED[name](original.read_text()))
    with pytest.raises(BenchlibError, match=r"names no measurement.*give --outputs"):
        trace.numbers(copy)
    found = trace.numbers(copy, folder=results)
    for number, one in zip(found, trace.numbers(original), strict=True):
        assert set(one.keys) <= set(number.keys), "those of all that say the same"
    assert trace.differences(copy, found, results) == []
    main(["trace", str(copy), "--outputs", str(results)])
    assert "has lost its keys" in capsys.readouterr().out

    edited = copy.read_text().replace("0.3", "0.4", 1)
    copy.write_text(edited)
    assert trace.differences(copy, trace.numbers(copy, folder=results), results)


def test_a_figure_without_its_metadata_is_traced_by_its_name(results: Path, tmp_path: Path) -> None:
    original = results / "figures" / "operators_ratios.svg"
    copy = tmp_path / original.name
    copy.write_text(re.sub(r"<metadata>.*</metadata>", "", original.read_text(), flags=re.DOTALL))
    assert trace.numbers(copy, folder=results) == trace.numbers(original)


@pytest.mark.parametrize(
    ("separator", "decimal", "encoding"),
    [(";", ",", "cp1252"), (";", ",", "utf-8-sig"), (";", ".", "utf-8"), ("\t", ",", "utf-16"), (",", ".", "utf-16")],
)
def test_a_table_that_a_spreadsheet_has_saved_is_traced_as_the_original(
    results: Path, tmp_path: Path, separator: str, decimal: str, encoding: str
) -> None:
    original = results / "tables" / "operators_ratios.csv"
    copy = tmp_path / original.name
    pd.read_csv(original).to_csv(copy, sep=separator, decimal=decimal, encoding=encoding, index=False)
    assert trace.numbers(copy) == trace.numbers(original)
    assert trace.differences(copy, trace.numbers(copy), results) == []


@pytest.mark.parametrize("suffix", [".csv", ".tex", ".svg", ".png", ".pdf"])
@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfea", b"\x81\x00", b"a,b\n1\n1,2,3,4\n", b"\0" * 9, b"tEXtKeywords\0\xff"]
)
def test_what_is_no_such_file_is_refused_in_a_sentence(
    results: Path, tmp_path: Path, suffix: str, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / f"x{suffix}"
    file.write_bytes(content)
    assert main(["trace", str(file), "--outputs", str(results)]) == 2
    assert str(file) in capsys.readouterr().err


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


def test_a_frame_is_refused_with_what_can_be_traced(results: Path) -> None:
    with pytest.raises(BenchlibError, match=r"frame\.parquet: cannot be traced: give a file that ends in .csv"):
        trace.numbers(results / "tables" / "operators_frame.parquet")


def test_a_name_that_is_not_there_is_refused_with_one_that_is(results: Path) -> None:
    with pytest.raises(BenchlibError, match="it has, for instance"):
        trace.numbers(results / "tables" / "operators_macros.tex", "benchlibNothing")


def test_certificates_can_be_traced_too(tmp_path: Path) -> None:
    parameters = experiments.load("equivalence", ROOT / "parameters" / "quick" / "equivalence.yaml")
    lab = SyntheticLab(tmp_path)
    result = experiments.module("equivalence").measure(parameters, lab)
    result.summary()
    (_, certificate), *_ = result.checked
    save(lab.certificate_path(certificate.condition), certificate)
    number = trace.numbers(tmp_path / "tables" / "equivalence_certificates.csv")[0]
    (source,) = trace.sources(number.keys, tmp_path)
    assert source.says[0].startswith("certificate: ")
    assert ": same; " in source.says[0]
    assert source.says[0].endswith("1.0; benchlib 1.0 synthetic")
    assert "have changed since" in source.verdict, "this one was made up: its key is not that of what is here"
    real = Lab(outputs=tmp_path).certificate_path(certificate.condition)
    save(real, certificate.model_copy(update={"file": real.stem}))
    assert trace.sources([real.stem], tmp_path)[0].verdict == trace.MATCHES
    real.write_text(real.read_text().replace('"tolerance": 1e-05', '"tolerance": 1.0'))
    assert "does not match its hash" in trace.sources([real.stem], tmp_path)[0].verdict


def test_a_lock_that_has_changed_is_said_of_the_notebooks_that_are_traced(tmp_path: Path) -> None:
    lock = (ROOT / "requirements.lock").read_bytes()
    (tmp_path / "notebooks").mkdir()
    for name, made_with in {"modes": lock, "scaling": b"an older one", "operators": b"an older one"}.items():
        files = {"measurements/aa.parquet": ""} if name != "operators" else {"measurements/bb.parquet": ""}
        record = {"inputs": {"requirements.lock": records.digest(made_with)}, "files": files}
        (tmp_path / "notebooks" / f"{name}.json").write_text(json.dumps(record))
    assert trace.stale(["aa"], tmp_path) == ["scaling: requirements.lock has changed since this notebook was executed"]


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
