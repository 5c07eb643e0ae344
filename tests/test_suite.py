"""The suite on toy notebooks: no failure looks like success, and nothing is done twice."""

import contextlib
import errno
import fcntl
import functools
import importlib.metadata
import io
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import psutil
import pytest
import yaml
from papermill.iorw import papermill_io
from patience import until

from benchlib import env_vars, manifest, progress
from benchlib.cli import main
from benchlib.errors import BenchlibError
from benchlib.provenance import fingerprint, installed, machine
from benchlib.report.pdf import NoBrowser
from benchlib.runner import availability
from benchlib.runner.machine_lock import hold_machine
from benchlib.suite import execute, pages, profile, staleness
from benchlib.suite import runs as suite
from benchlib.worker import files

ROOT = Path(__file__).parents[1]

SUMMARY = """
from IPython.display import display
summary = {{"title": "a toy", "failures": {failures}, "figures": ["figures/toy.svg"]}}
scrap = {{"name": "summary", "data": summary, "encoder": "json", "version": 1}}
metadata = {{"scrapbook": {{"name": "summary", "data": True, "display": False}}}}
display({{"application/scrapbook.scrap.json+json": scrap}}, metadata=metadata, raw=True)
from pathlib import Path
Path(outputs, "figures").mkdir(exist_ok=True)
Path(outputs, "figures", "toy.svg").write_text("<svg/>")
"""
"""What scrapbook.glue does, without its import, which takes as long as all the rest."""

GOOD = [
    "import sys\nfrom benchlib.progress import Progress\nprint(sys.executable, count, outputs)",
    "with Progress(2, 'toy work') as progress:\n    progress.step('the first')\n    progress.step('the second')",
    "import scrapbook\nscrapbook.glue('summary', {'title': 'a toy', 'failures': 0, 'figures': []})",
]

LIMIT = """
now = int(open('/proc/self/statm').read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (now + {more}, now + {more}))
"""
LEAK = "x = [bytearray(1000) for _ in range(10**7)]"
"""A kernel whose memory runs out: with a little more it can still say so, with none it cannot."""

CERTIFYING = "study.certify(study.conditions([{'framework': 'pytorch'}], workload='cnn', batch_size=count))"

REPORT = """
import json
from pathlib import Path
for path in sorted(Path(outputs, "notebooks").glob("*.json")):
    record = json.loads(path.read_text())
    print(path.stem, record["status"], record.get("error", {}).get("text"))
"""

DESIGN = """
import sys
if "benchlib.study" in sys.modules:  # in the suite's process: a kernel need not wait for the import
    from benchlib.study import Study
    study = Study({name!r}, title="a toy", question="Which?", settings=settings or None)
"""


def write_notebook(name, *cells, design=""):
    """A notebook with its tagged cells and these; a cell that begins with # and a blank is Markdown. The report has no
    design; what another's has besides is ``design``, of one line.
    """
    source = "count: int = 0\nsettings: dict = {}\noutputs = ''" if name != "report" else "outputs = ''"
    tagged = [nbformat.v4.new_code_cell(source, metadata={"tags": ["parameters"]})]
    if name != "report":
        source = DESIGN.format(name=name) + (f"    {design}" if design else "")
        tagged.append(nbformat.v4.new_code_cell(source, metadata={"tags": ["design"]}))
    new = [nbformat.v4.new_markdown_cell(c) if re.match("#+ ", c) else nbformat.v4.new_code_cell(c) for c in cells]
    kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=[*tagged, *new], metadata={"kernelspec": kernelspec})
    Path("notebooks").mkdir(exist_ok=True)
    nbformat.write(notebook, Path("notebooks", f"{name}.ipynb"))


def write_parameters(name, **parameters):
    Path("parameters/quick").mkdir(parents=True, exist_ok=True)
    Path("parameters/quick", f"{name}.yaml").write_text(yaml.safe_dump(parameters))


def printed(html, pdf, paper, date):
    """In place of printing with a browser, which takes seconds."""
    pdf.write_text(f"{html.name} on {paper}")


def pretend(notebook, parameters, output):
    """In place of executing a notebook, for tests of when it is and with what: its first cell says how much its kernel
    would measure.
    """
    copy = nbformat.read(notebook, as_version=4)
    first = next(cell for cell in copy.cells if cell.cell_type == "code")
    first.outputs = [nbformat.v4.new_output("stream", text=f"{os.environ.get('BENCHLIB_MEASURES')}\n")]
    nbformat.write(copy, output)
    if notebook.stem == "report":
        return None
    figure = Path(parameters["outputs"], "figures", "toy.svg")
    figure.parent.mkdir(exist_ok=True)
    partial = figure.with_name(f".{notebook.stem}.svg")  # two notebooks at a time write it
    partial.write_text("<svg/>")
    partial.replace(figure)
    number = len(list(Path(parameters["outputs"], "measurements").glob("*")))
    return {"failures": 0, "figures": ["figures/toy.svg"], "awaited": [str(number + 1)]}


def make_project(folder, patch, names):
    """Make ``folder`` a project with notebooks of these names, whose cells are still to be written, and go there."""
    folder.mkdir(exist_ok=True)
    patch.chdir(folder)
    patch.setattr(papermill_io.get_handler("local"), "_cwd", None)  # two at once leave it the folder of a test before
    patch.setenv("PYTHONPATH", str(ROOT))
    patch.setattr(pages, "print_pdf", printed)
    for name in names:
        write_parameters(name, count=1)
        write_notebook(name, SUMMARY.format(failures=0))
    write_notebook("report", "# A report", REPORT)


def use_temporary_folder(folder, patch):
    """Have temporary files made in ``folder``, in kernels, too."""
    folder.mkdir()
    patch.setattr(tempfile, "tempdir", str(folder))
    patch.setenv("TMPDIR", str(folder))


def run_and_read(arguments=("run",)):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main(arguments)
    return code, said.getvalue()


def measure_nothing(monkeypatch):
    """Notebooks of these tests have conditions that nobody measures."""
    monkeypatch.setattr(suite.clock, "measure", lambda notebooks, folder, clock: list(notebooks))


def record_of(name):
    return manifest.read(Path("outputs/quick"), name)


def executed(name):
    return Path("outputs/quick/notebooks", f"{name}.ipynb")


def printed_in(path):
    cells = nbformat.read(path, as_version=4).cells
    return "".join(o.get("text", "") for c in cells if c.cell_type == "code" for o in c.outputs)


class TestFirstRun:
    """One run with kernels of all kinds: a good one, and each way to fail."""

    @pytest.fixture(scope="class", autouse=True)
    @staticmethod
    def said(tmp_path_factory):
        folder = tmp_path_factory.mktemp("project")
        with pytest.MonkeyPatch.context() as patch:
            make_project(folder, patch, ["good", "raising", "killed", "leaking", "starved", "leaving", "silent"])
            write_notebook("good", *GOOD)
            write_notebook("raising", "print('so far')", "1 / 0", "print('never')")
            write_notebook("killed", SUMMARY.format(failures=0), "import os\nos.kill(os.getpid(), 9)")
            write_notebook("leaking", "import resource", LIMIT.format(more=3_000_000), LEAK)
            write_notebook("starved", "import resource", LIMIT.format(more=0) + LEAK)
            write_notebook("leaving", SUMMARY.format(failures=0), "import sys\nsys.exit()", "print('never')")
            write_notebook("silent", "print('no summary')")
            wrong = folder / "jupyter" / "kernels" / "python3"  # as if another environment's kernel had the name
            wrong.mkdir(parents=True)
            (wrong / "kernel.json").write_text('{"argv": ["/bin/false"], "display_name": "x", "language": "python"}')
            patch.setenv("JUPYTER_PATH", str(folder / "jupyter"))
            use_temporary_folder(folder / "temporary", patch)
            yield run_and_read()

    def test_a_success_has_its_name_and_its_record(self):
        assert executed("good").exists()
        assert not executed(".partial-good").exists()
        record = record_of("good")
        assert (record["status"], record["failures"]) == ("succeeded", 0)
        assert record["parameters"] == {"count": 1, "settings": {}}
        assert record["versions"]["ipykernel"]
        assert record["machine"]["cores"] >= 1
        assert record["seconds"] > 0

    def test_the_kernel_is_this_interpreter_whatever_is_installed_as_python3(self):
        assert printed_in(executed("good")) == f"{sys.executable} 1 outputs/quick\n"
        assert record_of("good")["interpreter"] == sys.executable

    def test_no_temporary_file_is_left(self):
        assert os.listdir("temporary") == []

    def test_progress_is_said_line_by_line_and_is_not_in_the_notebook(self, said):
        lines = said[1].splitlines()
        assert "  toy work: 1/2, 0 s left: the first" in lines
        assert "  toy work: 2/2: the second" in lines
        assert "toy work" not in printed_in(executed("good"))

    @pytest.mark.parametrize(
        ("name", "cell", "error"),
        [
            ("raising", r"In \[5\] \(1 / 0\)", "ZeroDivisionError: division by zero"),
            ("killed", r"In \[5\] \(import os\)", "the kernel was killed, .* memory"),
            ("leaking", r"In \[6\] \(x = .*\)", f"MemoryError: {execute.MEMORY}"),
            ("starved", r"In \[5\] \(now = .*\)", "the kernel said no error, .* memory"),
            ("leaving", r"In \[5\] \(import sys\)", "the notebook ended itself before its last cell"),
            ("silent", "its last cell", "it glued no summary"),
        ],
    )
    def test_a_failure_is_named_and_has_no_result(self, said, name, cell, error):
        code, text = said
        partial = f"outputs/quick/notebooks/.partial-{name}.ipynb"
        assert code == 1
        assert re.search(f"{name} failed in {cell}:\n  {error}.*\n  incomplete notebook: {partial}\n", text)
        assert record_of(name)["status"] == "failed"
        assert Path(partial).exists()
        assert not executed(name).exists()

    def test_the_report_is_made_all_the_same_and_can_say_what_is_missing(self, said):
        assert said[1].endswith("6 of 8 notebooks failed: killed, leaking, leaving, raising, silent, starved\n")
        assert "good succeeded None" in printed_in(executed("report"))
        assert "raising failed ZeroDivisionError" in Path("outputs/quick/report.html").read_text()
        assert Path("outputs/quick/report.pdf").read_text() == "report.html on a4"


class TestUnchanged:
    """What is executed again, and what not; nothing is really executed."""

    @pytest.fixture(autouse=True)
    def project(self, tmp_path, monkeypatch):
        make_project(tmp_path / "project", monkeypatch, ["first", "second"])
        Path("requirements.lock").write_text("numpy==1.26.4\n")
        self.failures = self.crashed = 0

        def pretend(notebook, parameters, output):
            self.ran.append(notebook.stem)
            shutil.copy(notebook, output)
            figure = Path(parameters["outputs"], "figures", f"{notebook.stem}.svg")
            figure.parent.mkdir(exist_ok=True)
            figure.write_text("<svg/>")
            failures = self.failures if notebook.stem == "first" else 0
            return {"failures": failures, "crashed": self.crashed, "figures": [f"figures/{figure.name}"]}

        monkeypatch.setattr(execute, "execute", pretend)
        assert self.run() == ["first", "second", "report"]

    def run(self, expected=0):
        self.ran = []
        code, self.said = run_and_read()
        assert code == expected
        return sorted(self.ran, key=["first", "second", "report"].index)  # two are executed at once

    def test_nothing_is_executed_twice_and_the_suite_says_so(self):
        pages = [Path("outputs/quick/report.html"), Path("outputs/quick/report.pdf")]
        before = [page.stat().st_mtime_ns for page in pages]
        Path("outputs/quick/measurements").mkdir()
        Path("outputs/quick/measurements/of_another.parquet").touch()
        assert self.run() == []
        assert "first: unchanged, not executed again (outputs/quick/notebooks/first.ipynb)\n" in self.said
        assert [page.stat().st_mtime_ns for page in pages] == before

    def test_another_parameter_notebook_or_figure(self):
        write_parameters("second", count=2)
        assert self.run() == ["second", "report"]
        assert "second: started again: these have changed: parameters\n" in self.said
        write_notebook("first", "print('other')")
        assert self.run() == ["first", "report"]
        Path("outputs/quick/figures/second.svg").write_text("<svg>drawn in JupyterLab</svg>")
        assert "second" in self.run()
        assert "figures/second.svg differs from the one that it made\n" in self.said
        for path in ("notebooks/first.ipynb", "figures/first.svg", "notebooks/first.json"):
            Path("outputs/quick", path).unlink()
            assert "first" in self.run()

    def test_another_library_lock_or_machine(self, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(staleness, "_library_hashes", dict)
            assert self.run() == ["first", "second", "report"]
        assert self.run() == ["first", "second", "report"]
        Path("requirements.lock").write_text("numpy==1.26.5\n")
        assert self.run() == ["first", "second", "report"]
        monkeypatch.setenv("BENCHLIB_DATA", "/elsewhere")
        assert self.run() == [], "it is the images that count, not where they lie"
        monkeypatch.setattr(machine, "describe", lambda: {"cpu": "another"})
        assert self.run() == ["first", "second", "report"]
        assert "again: these have changed: machine (" in self.said
        assert "cpu: another, was " in self.said

    def test_of_other_versions_it_says_which(self):
        record = record_of("first")
        record |= {"interpreter": "/older/python", "versions": {**record["versions"], "pip": "1.0"}}
        record["inputs"]["versions"] = "other"
        manifest.write(manifest.path_of(Path("outputs/quick"), "first"), record)
        assert self.run() == ["first", "report"]
        of_pip = f"pip: {importlib.metadata.version('pip')}, was 1.0"
        changed = f"versions (interpreter: {sys.executable}, was /older/python; {of_pip})"
        assert f"first: started again: these have changed: {changed}\n" in self.said

    def test_other_variables_or_packages_of_what_is_measured(self, tmp_path, monkeypatch):
        write_notebook("first", "1", design=CERTIFYING)
        write_parameters("first", count=4)
        monkeypatch.delenv(env_vars.WORKER_PATH, raising=False)
        measure_nothing(monkeypatch)
        assert self.run() == ["first", "report"], "other conditions, other inputs"
        assert self.run() == []
        monkeypatch.setenv(env_vars.WORKER_PATH, str(tmp_path))
        assert self.run() == ["first", "report"]
        assert "first: started again: these have changed: variables\n" in self.said
        (tmp_path / "sitecustomize.py").write_text("A = 1")
        assert self.run() == ["first", "report"]
        of_framework = installed.packages
        more = {"scikit-learn": "9.9"}

        def needed(name, workload=None, environment="default"):
            return {**of_framework(name, None, environment), **(more if workload == "cnn" else {})}

        monkeypatch.setattr(installed, "packages", needed)
        assert self.run() == ["first", "report"]
        assert "first: started again: these have changed: packages\n" in self.said
        monkeypatch.setattr(profile.prepare, "identity", lambda name: "other images")
        assert self.run() == ["first", "report"]
        assert "first: started again: these have changed: data\n" in self.said
        assert self.run() == []

    def test_what_crashed_is_measured_again_by_the_next_run_and_a_refusal_is_not(self):
        self.failures, self.crashed = 2, 1
        write_parameters("first", count=2)
        assert self.run(expected=1) == ["first", "report"]
        assert self.said.endswith("first: 2 measurements failed, see the report\n")
        self.failures, self.crashed = 1, 0
        assert self.run(expected=1) == ["first", "report"]
        assert "first: started again: 1 measurements had failed\n" in self.said
        assert self.run(expected=1) == [], "it is known, and still missing"
        assert self.said.endswith("first: 1 measurement failed, see the report\n")
        code, said = run_and_read(["report"])
        assert (code, said.splitlines()[-1]) == (1, "first: 1 measurement failed, see the report")

    def test_pages_are_made_by_what_is_in_them_whatever_the_clock_said(self):
        page, paper = Path("outputs/quick/report.html"), Path("outputs/quick/report.pdf")
        for old in (page, paper):
            old.write_text("of before the clock jumped")
            os.utime(old, (2**33, 2**33))
            assert self.run() == []
            assert "A report" in page.read_text()
            assert paper.read_text() == "report.html on a4"
        write_notebook("report", "# Another report")
        for old in (page, paper):
            os.utime(old, (2**33, 2**33))
        assert self.run() == ["report"]
        assert "Another report" in page.read_text()
        assert paper.stat().st_mtime < 2**33

    @pytest.mark.parametrize(("error", "code"), [(NoBrowser("no browser"), 0), (BenchlibError("it failed"), 1)])
    def test_without_a_browser_the_page_is_all_and_one_that_fails_is_a_failure(self, monkeypatch, error, code):
        def fail(*arguments):
            raise error

        monkeypatch.setattr(pages, "print_pdf", fail)
        write_notebook("report", "# Another report")
        assert self.run(expected=code) == ["report"]
        assert str(error) in self.said.splitlines()[-1]
        assert Path("outputs/quick/report.html").exists()
        assert not Path("outputs/quick/report.pdf").exists(), "the PDF of the older page"

    def test_a_result_of_old_inputs_does_not_outlive_the_failure_of_the_new(self, monkeypatch):
        def fail(notebook, parameters, output):
            raise execute.NotebookFailed("In [1]", "no")

        monkeypatch.setattr(execute, "execute", fail)
        write_parameters("second", count=2)
        code, _ = run_and_read()
        assert code == 1
        assert executed("first").exists()
        assert not executed("second").exists()
        assert not Path("outputs/quick/report.html").exists()
        assert not Path("outputs/quick/report.pdf").exists()

    def test_a_second_run_in_the_same_folder_is_refused(self):
        with open("outputs/quick/.lock", "a+") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            code, said = run_and_read()
            assert code == 2
            assert said.startswith(f"error: outputs/quick: another run (process {os.getpid()}, since ")
            assert run_and_read(["run", "--outputs", "outputs/other"])[0] == 0
        assert self.run() == []

    def test_a_folder_without_file_locks_is_refused(self, monkeypatch):
        monkeypatch.setattr(fcntl, "flock", without_locks)
        code, said = run_and_read()
        assert (code, said.count("\n")) == (2, 1)
        assert said.startswith("error: outputs/quick: cannot be locked (Function not implemented)")


def without_locks(*arguments):
    raise OSError(errno.ENOSYS, "Function not implemented")


def test_where_the_machine_cannot_be_locked_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", without_locks)
    refused = pytest.raises(BenchlibError, match=r"machine\.lock: cannot be locked \(Function not implemented\)")
    with refused, hold_machine(print):
        pass
    with pytest.raises(BenchlibError, match=r"inputs: cannot be locked \(Function not implemented\)"):
        files.write(tmp_path / "inputs" / "numbers", {}, {})


@pytest.mark.parametrize(
    ("kernel", "told"),
    [("raise SystemExit('a port in use')", "died before"), ("import time; time.sleep(60)", "respond in 1 seconds")],
)
def test_of_a_kernel_that_does_not_start_no_cause_is_guessed(tmp_path, monkeypatch, kernel, told):
    make_project(tmp_path / "project", monkeypatch, ["first"])
    spec = {"argv": [sys.executable, "-c", kernel], "display_name": "x", "language": "python"}
    monkeypatch.setattr("ipykernel.kernelspec.get_kernel_dict", lambda: spec)
    monkeypatch.setattr(execute, "START_S", 1)
    with pytest.raises(execute.NotebookFailed) as failed:
        execute.execute(Path("notebooks/first.ipynb"), {}, Path("first.ipynb"))
    assert told in failed.value.text
    assert "memory" not in failed.value.text


def full(*arguments, **options):
    raise OSError(errno.ENOSPC, "No space left on device")


class TestNoRoom:
    """A disk that is full, or may not be written to: what can be made is made, and the rest is told in a line."""

    @pytest.fixture(autouse=True)
    @staticmethod
    def project(tmp_path, monkeypatch):
        make_project(tmp_path / "project", monkeypatch, ["first", "second"])

    def test_a_notebook_that_cannot_be_saved_does_not_stop_the_others(self, monkeypatch):
        write_notebook("first", "print('x' * 3_000_000)", SUMMARY.format(failures=0))
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, before[1]))  # the second MiB is cut off, as it is there
        try:
            code, said = run_and_read()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert code == 1
        partial = "outputs/quick/notebooks/.partial-first.ipynb"
        assert f"first failed in a cell that is not known:\n  {partial}" in said
        assert "File too large" in said
        assert said.splitlines()[-1] == "1 of 3 notebooks failed: first"
        assert not Path(partial).exists(), "it was cut, and others need the room"
        assert (record_of("first")["status"], record_of("second")["status"]) == ("failed", "succeeded")
        assert "first failed" in printed_in(executed("report"))
        write_notebook("first", SUMMARY.format(failures=0))
        assert run_and_read()[0] == 0

    def test_a_page_that_cannot_be_written_is_told_and_is_not_there_in_part(self, monkeypatch):
        monkeypatch.setattr(execute, "execute", pretend)
        really = Path.write_text

        def cut(path, text, **options):
            really(path, text[:100] if "<html" in text[:99] else text, **options)
            return full() if "<html" in text[:99] else None

        with monkeypatch.context() as patch:
            patch.setattr(Path, "write_text", cut)
            code, said = run_and_read()
        assert code == 1
        assert "report: outputs/quick: No space left on device" in said.splitlines()[-1]
        assert not list(Path("outputs/quick").glob("*report*"))

    @pytest.mark.parametrize("part", ["notebooks", ".lock", "progress.log"])
    def test_outputs_that_cannot_be_written_to_are_refused_before_anything_starts(self, part):
        Path("outputs").mkdir()
        if part == "notebooks":
            Path("outputs/quick").touch()
        else:
            Path("outputs/quick", part).mkdir(parents=True)
        code, said = run_and_read()
        assert code == 2
        assert said.startswith("error: outputs/quick")
        assert said.endswith("choose another folder with --outputs\n")
        assert said.count("\n") == 1

    def test_a_log_without_room_is_told_at_the_end(self):
        with open("/dev/full", "w") as nowhere:
            command = [sys.executable, "-m", "benchlib", "devices"]
            said = subprocess.run(command, stdout=nowhere, stderr=subprocess.PIPE, text=True)
        assert (said.returncode, said.stderr.count("\n")) == (1, 1)
        assert "error: standard output, or a file: No space left on device" in said.stderr


class TestRefused:
    """Wrong input is refused before anything is written."""

    @pytest.fixture(autouse=True)
    def project(self, tmp_path, monkeypatch):
        make_project(tmp_path / "project", monkeypatch, ["first", "second"])
        yield
        assert not Path("outputs").exists()

    def test_all_wrong_parameters_at_once(self):
        write_parameters("first", count="many")
        write_parameters("second", count="few")
        write_parameters("secnd", count=1)
        assert run_and_read() == (
            2,
            "error: parameters/quick/secnd.yaml: unknown notebook 'secnd': did you mean 'second'? "
            "(there are: first, report, second)\n"
            "parameters/quick/first.yaml: count: 'many': Input should be a valid integer\n"
            "parameters/quick/second.yaml: count: 'few': Input should be a valid integer\n",
        )

    @pytest.mark.parametrize("command", ["run", "report"])
    @pytest.mark.parametrize("wrong", ["gone", "moved", "twice"])
    def test_a_notebook_that_parameters_would_not_reach(self, wrong, command):
        path = Path("notebooks/report.ipynb")
        notebook = nbformat.read(path, as_version=4)
        tag = notebook.cells[0].metadata.pop("tags")
        if wrong != "gone":
            notebook.cells[1].metadata["tags"] = tag
        if wrong == "twice":
            notebook.cells[0].metadata["tags"] = tag
        nbformat.write(notebook, path)
        Path("there/notebooks").mkdir(parents=True)
        code, said = run_and_read([command, "--outputs", "there"])
        assert code == 2
        assert said.startswith("error: notebooks/report.ipynb: ")
        assert "the tag parameters" in said
        assert list(Path("there").rglob("*")) == [Path("there/notebooks")]

    def test_a_profile_is_of_the_notebooks_that_it_has_files_for_and_has_one(self):
        Path("parameters/quick/second.yaml").unlink()
        assert [item.name for item in profile.plan("quick")] == ["first", "report"]
        Path("parameters/quick/first.yaml").unlink()
        code, said = run_and_read()
        assert (code, "error: parameters/quick has no parameter file" in said) == (2, True)

    def test_hidden_files_are_no_parameters_and_no_profile(self):
        Path("parameters/quick/._first.yaml").write_bytes(b"\x00\x05\x16\x07")  # macOS leaves it on other disks
        Path("parameters/.ipynb_checkpoints").mkdir()
        assert [item.name for item in profile.plan("quick")] == ["first", "second", "report"]
        assert ".ipynb_checkpoints" not in run_and_read(["run", "--profile", "quik"])[1]

    def test_one_parameter_of_one_notebook_is_given_by_the_command(self):
        first, second, _ = profile.plan("quick", ["first.count=7"])
        assert (first.parameters["count"], second.parameters["count"]) == (7, 1)
        for wrong, why in {
            "first.count=many": "parameters/quick/first.yaml: count: 'many': Input should be",
            "frist.count=7": "--set: unknown notebook 'frist': did you mean 'first'",
            "count=7": "--set 'count=7': give NOTEBOOK.KEY=VALUE",
            "first.count=[7": "--set 'first.count=[7': give NOTEBOOK.KEY=VALUE",
        }.items():
            assert why in run_and_read(["run", "--set", wrong])[1]

    def test_an_unknown_profile_and_another_folder(self, tmp_path, monkeypatch):
        code, said = run_and_read(["run", "--profile", "quik"])
        assert (code, said) == (2, "error: unknown profile 'quik': did you mean 'quick'? (there are: quick)\n")
        monkeypatch.chdir(tmp_path)
        assert "run this in the project's folder" in run_and_read()[1]


def test_what_this_machine_does_not_have_is_refused_with_the_file(tmp_path, monkeypatch):
    def refuse(conditions):
        raise BenchlibError(f"{conditions[0].workload}: device 'npu': no Ascend device")

    make_project(tmp_path / "project", monkeypatch, ["first"])
    write_notebook("first", "1", design=CERTIFYING)
    monkeypatch.setattr(availability, "require", refuse)
    with pytest.raises(BenchlibError, match=r"^parameters/quick/first\.yaml: cnn: device 'npu': no Ascend device$"):
        profile.plan("quick")


def test_files_of_the_working_directory_of_pythonpath_and_for_the_start_change_no_kernel(tmp_path, monkeypatch):
    make_project(tmp_path / "project", monkeypatch, ["first"])
    asked = "from importlib.util import find_spec\nprint(benchlib.__file__, 'project' in find_spec('torch').origin)"
    write_notebook("first", "import benchlib.lab, json, numpy", asked, SUMMARY.format(failures=0))
    for name in ("json", "benchlib", "torch", "numpy", "ipykernel", "sitecustomize"):
        Path(f"{name}.py").write_text("raise RuntimeError('this is of the user')")
    startup = tmp_path / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "own.py").write_text("import os; os._exit(1)")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PYTHONSTARTUP", str(startup / "own.py"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path.cwd()), str(ROOT)]))
    code, said = run_and_read()
    assert code == 0, said
    assert printed_in(executed("first")) == f"{fingerprint.PACKAGE / '__init__.py'} False\n"


DRIVER = """
import sys
sys.path.insert(0, {tests!r})
import test_suite
from benchlib.suite import pages
from benchlib.cli import main
pages.print_pdf = test_suite.printed
sys.exit(main(["run"]))
"""

SLEEPING = """
import os, pathlib, time
from benchlib import scratch
folder = scratch.make("worker")
pathlib.Path("kernel.pid").write_text(str(os.getpid()))
if not pathlib.Path("wake").exists():
    time.sleep(100)
scratch.remove(folder)
"""

WAITING = """
from pathlib import Path
from benchlib.runner import machine_lock as turn
turn.LOCK = Path("machine.lock")
Path("kernel.pid").touch()
with turn.hold_machine(print):
    pass
"""

INTERRUPTED_IMPORT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Finder:
    def find_spec(name, path, target=None):
        if name == "benchlib.suite.runs":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder)
from benchlib.cli import main
code = main(["run"])
os.kill(os.getpid(), signal.SIGINT)
sys.exit(code)
"""

STOPPED = "\nstopped; the measurements are kept, and the same command goes on from there\n"


def test_stopped_while_it_waits_for_the_machine_it_says_so_in_a_line(tmp_path, monkeypatch):
    make_project(tmp_path / "project", monkeypatch, ["sleeping"])
    write_notebook("sleeping", WAITING, SUMMARY.format(failures=0))
    with open("machine.lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        command = [sys.executable, "-c", DRIVER.format(tests=str(Path(__file__).parent))]
        heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        run = subprocess.Popen(command, **pipes, preexec_fn=heed)
        until(lambda: Path("kernel.pid").exists())
        for _ in range(3):  # by someone impatient
            run.send_signal(signal.SIGINT)
            time.sleep(0.05)
        said = run.communicate(timeout=60)[1]
    assert (run.returncode, said) == (130, STOPPED)


def test_stopped_while_it_imports_it_says_so_in_a_line(tmp_path):
    said = subprocess.run([sys.executable, "-c", INTERRUPTED_IMPORT], capture_output=True, text=True, cwd=ROOT)
    assert (said.returncode, said.stdout, said.stderr) == (130, "", STOPPED)


def test_killed_or_stopped_it_leaves_no_kernel_and_no_success_and_goes_on_the_next_time(tmp_path, monkeypatch):
    make_project(tmp_path / "project", monkeypatch, ["sleeping"])
    use_temporary_folder(tmp_path / "temporary", monkeypatch)
    write_notebook("sleeping", SUMMARY.format(failures=0), SLEEPING)
    command = [sys.executable, "-c", DRIVER.format(tests=str(Path(__file__).parent))]
    for number, code in [(signal.SIGKILL, -9), (signal.SIGINT, 130)]:
        Path("kernel.pid").unlink(missing_ok=True)
        # a shell's background jobs, such as tests may be, ignore Ctrl-C, and so would what they start
        heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        run = subprocess.Popen(command, **pipes, preexec_fn=heed)
        kernel = until(lambda: Path("kernel.pid").exists() and psutil.Process(int(Path("kernel.pid").read_text())))
        run.send_signal(number)
        said = run.communicate(timeout=60)[1]
        assert run.returncode == code
        assert said == ("" if number == signal.SIGKILL else STOPPED)
        until(lambda kernel=kernel: not kernel.is_running())
        assert not executed("sleeping").exists()
        assert record_of("sleeping")["status"] == "running"
        left = sorted(path.name.rpartition("-")[0] for path in (tmp_path / "temporary").iterdir())
        killed = number == signal.SIGKILL
        assert left == (["benchlib-kernel", "benchlib-worker"] if killed else []), "of the one that was killed, too"
    Path("wake").touch()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "sleeping: started again: it had not come to its end\n" in done.stdout
    assert done.stderr == ""
    assert executed("sleeping").exists()


class TestProgress:
    def test_headless_one_line_at_a_time(self, capsys, monkeypatch):
        monkeypatch.delenv(progress.FILE_VARIABLE, raising=False)
        with contextlib.suppress(ZeroDivisionError), progress.Progress(3, "runs") as bar:
            bar.step("61 %\nand more")
            raise ZeroDivisionError
        assert capsys.readouterr().err == (
            "runs: 0/3\nruns: 1/3, 0 s left: 61 % and more\nruns: 1/3, stopped after 0 s by ZeroDivisionError\n"
        )

    @pytest.mark.parametrize(("seconds", "words"), [(8.2, "8 s"), (99, "99 s"), (100, "2 min"), (4800, "1 h 20 min")])
    def test_durations_in_words(self, seconds, words):
        assert progress.duration(seconds) == words


class TestReport:
    """``benchlib report``: from what is there, with what is missing said, and nothing measured."""

    @pytest.fixture(autouse=True)
    @staticmethod
    def project(tmp_path, monkeypatch):
        make_project(tmp_path / "project", monkeypatch, ["first", "second"])
        monkeypatch.setattr(execute, "execute", pretend)
        assert run_and_read()[0] == 0

    def test_nothing_is_executed_but_the_report_and_nothing_is_missing(self):
        code, said = run_and_read(["report"])
        assert code == 0
        assert "first" not in said
        assert "report: unchanged" in said

    def test_a_notebook_that_failed_or_has_not_run_is_missing(self):
        for text in ('{"status": "failed", "error": {"cell": "In [1]", "text": "no", "partial": "x"}}', ""):
            manifest.path_of(Path("outputs/quick"), "second").write_text(text)
            code, said = run_and_read(["report"])
            assert code == 1
            assert "missing from the report: second" in said

    def test_a_figure_that_is_gone_or_changed_is_named_and_the_report_is_made_again(self):
        figure = Path("outputs/quick/figures/toy.svg")
        for damage in (lambda: figure.write_text("<svg>other</svg>"), figure.unlink):
            damage()
            code, said = run_and_read(["report"])
            assert code == 1
            assert "missing from the report: figures/toy.svg " in said
            assert "report: started again: these have changed: results" in said

    def test_it_asks_for_no_framework_and_no_data(self, monkeypatch):
        def refuse(*given):
            raise BenchlibError("not here")

        monkeypatch.setattr(profile, "design", refuse)
        assert run_and_read(["report"])[0] == 0


def test_outputs_that_jupyterlab_saves_into_a_notebook_do_not_make_its_result_stale(tmp_path, monkeypatch):
    make_project(tmp_path / "project", monkeypatch, ["first"])
    monkeypatch.setattr(execute, "execute", pretend)
    assert run_and_read()[0] == 0
    path = Path("notebooks/first.ipynb")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[2].outputs = [nbformat.v4.new_output("stream", text="seen in JupyterLab")]
    nbformat.write(notebook, path)
    assert "first: unchanged" in run_and_read()[1]
    notebook.cells[2].source += "\nprint('other')"
    nbformat.write(notebook, path)
    assert "first: started again: these have changed: notebook" in run_and_read()[1]


class TestTime:
    """What is measured is measured before the notebooks, on one clock."""

    @pytest.fixture(autouse=True)
    def project(self, tmp_path, monkeypatch):
        make_project(tmp_path / "project", monkeypatch, ("one", "two"))
        for name in ("one", "two"):
            asks = "import os\nprint(os.environ['BENCHLIB_MEASURES'])"
            write_notebook(name, asks, SUMMARY.format(failures=0), design=CERTIFYING)
        write_parameters("defaults", precision=0.03, pilot=3, block_s=0.1, margin=0.05, minutes=3)
        monkeypatch.setattr(suite.clock, "require", lambda *given: None)  # no time is known of these
        self.measured = []
        monkeypatch.setattr(suite.clock, "measure", self._measure)
        self.really = execute.execute
        monkeypatch.setattr(execute, "execute", pretend)
        self.wrong, self.spends, self.breaks_off = [], 0.0, False

    def _measure(self, notebooks, folder, time_):
        self.measured.append((list(notebooks), round(time_.left_s / 60)))
        (folder / "measurements").mkdir(exist_ok=True)
        (folder / "measurements" / f"{len(self.measured)}.parquet").write_text("")
        time_._started -= self.spends
        time_.broke_off = self.breaks_off
        time_.keep()
        return self.wrong

    def test_all_is_measured_before_the_notebooks_which_then_measure_nothing(self, monkeypatch):
        monkeypatch.setattr(execute, "execute", self.really)  # so that a kernel inherits it in fact
        assert run_and_read()[0] == 0
        assert self.measured == [(["one", "two"], 3)]
        assert printed_in(executed("one")) == "nothing\n"

    def test_the_time_of_the_profile_is_that_of_all_runs(self):
        self.spends = 120
        run_and_read()
        self.spends = 60
        _, said = run_and_read()
        assert self.measured[1:] == [(["one", "two"], 1)], "what is left of it"
        assert "one: started again: there are more measurements of its comparisons" in said
        _, said = run_and_read()
        assert len(self.measured) == 2, "it is spent, and nothing has changed"
        assert "one: unchanged, not executed again" in said

    def test_no_minutes_measure_nothing_and_more_measure_more_whatever_was_spent(self):
        assert run_and_read(("run", "--minutes", "0"))[0] == 0
        assert self.measured == []
        assert printed_in(executed("two")) == "nothing\n"
        self.spends = 300
        run_and_read()
        run_and_read(("run", "--minutes", "10"))
        assert self.measured[1:] == [(["one", "two"], 10)]

    def test_without_minutes_a_result_of_before_is_shown_as_stale_where_nothing_is_there_for_another(self, monkeypatch):
        monkeypatch.setattr(execute, "execute", self.really)
        needs = "import os\nif not os.path.exists(f'{outputs}/measurements/{count}.parquet'):\n    "
        raises = "from benchlib.lab import NotMeasured\n    raise NotMeasured('a toy')"
        write_notebook("one", needs + raises, SUMMARY.format(failures=0), design=CERTIFYING)
        code, said = run_and_read()
        assert code == 0, said
        before = executed("one").read_bytes()
        write_parameters("one", count=2)
        for _ in range(2):
            code, said = run_and_read(("run", "--minutes", "0"))
            assert code == 1
            assert "one: not measured again, its older result is shown, which is stale: these have changed" in said
            assert executed("one").read_bytes() == before
            assert not executed(".partial-one").exists()
            record = record_of("one")
            assert (record["status"], record["parameters"]["count"]) == ("succeeded", 1)
            assert record["stale"] == "these have changed: parameters"
        assert main(("report",)) == 1
        write_parameters("one", count=1)
        code, said = run_and_read(("run", "--minutes", "0"))
        assert (code, "stale" in record_of("one")) == (0, False), said

    def test_without_minutes_a_result_of_before_does_not_outlive_a_notebook_that_fails(self, monkeypatch):
        monkeypatch.setattr(execute, "execute", self.really)
        run_and_read()
        write_notebook("one", "1 / 0", design=CERTIFYING)
        run_and_read(("run", "--minutes", "0"))
        assert record_of("one")["status"] == "failed"
        assert not executed("one").exists()

    def test_what_could_not_be_measured_measures_by_itself_and_measuring_that_broke_off_is_a_failure(self):
        self.wrong, self.breaks_off = ["two"], True
        assert run_and_read()[0] == 1
        assert printed_in(executed("one")) == "nothing\n", "what is there is shown all the same"
        assert printed_in(executed("two")) == "budget\n"

    @pytest.mark.parametrize("minutes", ["-1", "ten", "nan", "inf", "1e9"])
    def test_minutes_that_are_none_are_refused(self, minutes, capsys):
        with pytest.raises(SystemExit) as ended:
            main(("run", f"--minutes={minutes}"))
        assert ended.value.code == 2
        assert "give a number of minutes, such as 30, or 0 to measure nothing" in capsys.readouterr().err
        assert not Path("outputs").exists()

    def test_too_few_minutes_are_refused_before_anything_starts(self, monkeypatch):
        def refuse(minutes, missing, _):
            raise BenchlibError(f"{minutes:g} for {', '.join(one.name for one in missing)}")

        monkeypatch.setattr(suite.clock, "require", refuse)
        code, said = run_and_read(("run", "--minutes", "0.5"))
        assert (code, said) == (2, "error: 0.5 for one, two\n")
        assert not Path("outputs").exists()
        assert run_and_read(("run", "--minutes", "0"))[0] == 0, "nothing is measured: no time is too short"

    def test_no_time_is_too_short_for_pilots_that_are_there_though_no_notebook_was_executed(self, monkeypatch):
        asked = []
        monkeypatch.setattr(suite.clock, "require", lambda *given: asked.append([one.name for one in given[1]]))

        def stopped(notebooks, folder, time_):
            time_.kept["piloted"] = True
            time_.keep()
            raise KeyboardInterrupt

        monkeypatch.setattr(suite.clock, "measure", stopped)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                suite.run("quick", None, 1.0)
        assert asked == [["one", "two"], []]
        write_parameters("one", count=2)
        with pytest.raises(KeyboardInterrupt):
            suite.run("quick", None, 1.0)
        assert asked[2:] == [["one", "two"]], "of other parameters there are no pilots"
