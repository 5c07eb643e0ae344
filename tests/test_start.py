"""The start page: each notebook with its question, its state and links; and ``lab``, which opens JupyterLab on it."""

import os
import re
import sys
from datetime import datetime
from pathlib import Path

import pytest
from test_suite import make_project, run_and_read, write_notebook, write_parameters

from benchlib.errors import BenchlibError
from benchlib.suite import outputs, plan, records, start

ROOT = Path(__file__).parents[1]


@pytest.fixture
def project(tmp_path, monkeypatch):
    make_project(tmp_path / "project", monkeypatch, ["first", "second"])
    asking = "# A title\n\n**The question.** Which is faster, `a` | `b`,\nand by how much?\n\n**How.** So."
    write_notebook("first", asking, "1 + 1")


def record(name, **values):
    """As if the notebook had been executed, or whatever ``values`` say."""
    folder = Path("outputs/quick/notebooks")
    folder.mkdir(parents=True, exist_ok=True)
    (item,) = (item for item in plan.plan("quick") if item.name == name)
    inputs = outputs.Outputs(Path("outputs/quick")).inputs(item)
    told = {"notebook": name, "status": "succeeded", "started_utc": "2026-01-02T03:04:05+00:00", "inputs": inputs}
    records.write(folder / f"{name}.json", {**told, "files": {}, **values})
    if values.get("status", "succeeded") == "succeeded":
        (folder / f"{name}.ipynb").write_text(Path("notebooks", f"{name}.ipynb").read_text())


def states():
    return {state.name: (state.word, state.why) for state in outputs.states("quick")}


@pytest.mark.usefixtures("project")
class TestStates:
    def test_what_was_never_started_is_missing(self):
        assert states()["first"] == ("missing", "it has not been started")

    def test_what_is_up_to_date_has_run(self):
        record("first")
        (state,) = (state for state in outputs.states("quick") if state.name == "first")
        assert (state.word, state.why, state.started_utc) == ("run", "", "2026-01-02T03:04:05+00:00")
        assert state.executed == Path("outputs/quick/notebooks/first.ipynb")

    def test_what_has_changed_is_named_in_the_words_of_a_run(self):
        record("first")
        write_parameters("first", count=2)
        assert states()["first"] == ("stale", "these have changed: parameters")

    def test_a_result_that_is_gone_is_missing(self):
        record("first")
        Path("outputs/quick/notebooks/first.ipynb").unlink()
        assert states()["first"] == ("missing", "outputs/quick/notebooks/first.ipynb is gone")

    def test_what_did_not_come_to_its_end_is_missing(self):
        record("first", status="running")
        assert states()["first"] == ("missing", "it had not come to its end")

    def test_what_failed_says_where_and_why(self):
        record("first", status="failed", error={"cell": "In [2] (1 / 0)", "text": "ZeroDivisionError"})
        assert states()["first"] == ("failed", "in In [2] (1 / 0): ZeroDivisionError")

    def test_a_wrong_parameter_is_a_reason_and_hides_no_other_notebook(self):
        record("second")
        write_parameters("second", count="many")
        found = states()
        assert found["second"] == ("stale", "parameters/quick/second.yaml: count: 'many' is no whole number")
        assert found["first"] == ("missing", "it has not been started")
        Path("parameters/quick/first.yaml").unlink()
        assert states()["first"] == ("missing", "there is no parameters/quick/first.yaml")

    def test_nothing_is_executed_or_written(self):
        states()
        assert not Path("outputs").exists()

    def test_an_unknown_profile_is_refused(self):
        with pytest.raises(BenchlibError, match="unknown profile 'quik': did you mean 'quick'"):
            outputs.states("quik")


@pytest.mark.usefixtures("project")
class TestPage:
    def rows(self):
        page = start.write("quick").read_text()
        return {row[0].strip("[").partition("]")[0]: row for row in self.table(page)}

    def table(self, page):
        """The table's cells, row by row, less its head."""
        rows = [line for line in page.splitlines() if line.startswith("| ")][1:]
        return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]

    def test_every_notebook_has_a_row_with_its_question_in_a_line(self):
        rows = self.rows()
        assert list(rows) == ["first", "second", "report"]
        assert all(len(row) == 4 for row in rows.values())
        assert rows["first"][1] == r"Which is faster, `a` \| `b`, and by how much?"

    def test_links_lead_to_files_that_are_there(self):
        record("first")
        Path("outputs/quick/report.html").write_text("a report")
        page = start.write("quick").read_text()
        targets = set(re.findall(r"\]\(([^)]+)\)", page)) - {"../README.md"}
        assert targets == {
            *(f"../notebooks/{name}.ipynb" for name in ("first", "second", "report")),
            "quick/notebooks/first.ipynb",
            "quick/report.html",
        }
        assert all((start.PAGE.parent / target).exists() for target in targets)

    def test_states_are_there_with_date_and_reason(self):
        record("first")
        write_parameters("first", count=2)
        date = f"{datetime.fromisoformat('2026-01-02T03:04:05+00:00').astimezone():%Y-%m-%d %H:%M}"
        assert self.rows()["first"][2] == f"**stale** {date}: these have changed: parameters"
        assert self.rows()["second"][2] == "**missing**: it has not been started"

    def test_of_another_profile_it_says_what_the_notebooks_open_with(self):
        Path("parameters/quick").rename("parameters/full")
        page = start.write("full").read_text()
        assert "**The notebooks open with the parameters of `quick`, and measure into `outputs/quick`.**" in page
        assert 'outputs = "../outputs/full"' in page
        Path("parameters/full").rename("parameters/quick")
        assert "open with" not in start.write("quick").read_text()

    def test_lab_becomes_jupyterlab_on_the_page(self, monkeypatch):
        became = []
        monkeypatch.setattr(os, "execv", lambda path, arguments: became.append((path, arguments)))
        run_and_read(["lab"])
        ((path, arguments),) = became
        assert path == sys.executable
        assert arguments[1:3] == ["-m", "jupyterlab"]
        assert "--LabApp.default_url=/lab/tree/outputs/start.md" in arguments
        assert start.PAGE.exists()

    def test_lab_refuses_an_unknown_profile(self):
        assert run_and_read(["lab", "--profile", "quik"])[0] == 2


def test_the_real_notebooks_ask_something(monkeypatch):
    monkeypatch.chdir(ROOT)
    for notebook in Path("notebooks").glob("*.ipynb"):
        question = start._question(notebook)
        assert 20 < len(question) < 400, notebook
