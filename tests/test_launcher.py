"""The start page: each notebook with its question, last run and links; and ``lab``, which opens JupyterLab on it."""

import ast
import json
import os
import re
import shutil
from pathlib import Path

import pytest
from test_suite import make_project, run_and_read, write_notebook, write_parameters

from benchlib import manifest
from benchlib.notebooks import cells
from benchlib.suite import launcher, profile, staleness

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
    (item,) = (item for item in profile.plan("quick") if item.name == name)
    inputs = staleness.Outputs(Path("outputs/quick")).inputs(item)
    told = {"notebook": name, "status": "succeeded", "started_utc": "2026-01-02T03:04:05+00:00", "inputs": inputs}
    told["awaited"] = []
    manifest.write(folder / f"{name}.json", {**told, "files": {}, **values})
    if values.get("status", "succeeded") == "succeeded":
        (folder / f"{name}.ipynb").write_text(Path("notebooks", f"{name}.ipynb").read_text())


@pytest.mark.usefixtures("project")
class TestPage:
    def rows(self):
        page = launcher.write("quick").read_text()
        return {row[0].strip("[").partition("]")[0]: row for row in self.table(page)}

    def table(self, page):
        """The table's cells, row by row, less its head."""
        rows = [line for line in page.splitlines() if line.startswith("| ")][1:]
        return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]

    def test_every_notebook_has_a_row_with_its_question_in_a_line(self):
        rows = self.rows()
        assert list(rows) == ["first", "second", "report"]
        assert all(len(row) == 3 for row in rows.values())
        assert rows["first"][1] == r"Which is faster, `a` \| `b`, and by how much?"

    def test_links_lead_to_files_that_are_there(self):
        record("first")
        Path("outputs/quick/report.html").write_text("a report")
        page = launcher.write("quick").read_text()
        targets = set(re.findall(r"\]\(([^)]+)\)", page)) - {"../README.md"}
        opened = {f"quick/lab/{name}.ipynb" for name in ("first", "second", "report")}
        assert targets == opened | {"quick/notebooks/first.ipynb", "quick/report.html"}
        assert all((launcher.PAGE.parent / target).exists() for target in targets)

    def test_a_notebook_without_parameters_in_the_profile_opens_nothing(self):
        Path("parameters/quick/first.yaml").unlink()
        Path("parameters/quick/second.yaml").write_text("count: 1\ncount: 2\n")
        assert list(self.rows()) == ["first", "second", "report"]
        assert "lab/first.ipynb" not in launcher.PAGE.read_text()
        assert "lab/second.ipynb" not in launcher.PAGE.read_text()

    def test_what_failed_and_what_cannot_run_say_why_and_what_has_not_run_is_said(self):
        record("first", status="failed", error={"cell": "In [2] (1 / 0)", "text": "ZeroDivisionError"})
        write_parameters("second", count="many")
        rows = self.rows()
        assert "In [2] (1 / 0): ZeroDivisionError" in rows["first"][2]
        assert "parameters/quick/second.yaml: count: 'many'" in rows["second"][2]
        assert rows["report"][2] == "none"

    def test_a_copy_with_changes_stays_as_it_is_and_is_said(self):
        launcher.write("quick")
        copy = Path("outputs/quick/lab/first.ipynb")
        mine = json.loads(copy.read_text())
        mine["cells"][-1]["source"] = ["2 + 2"]
        copy.write_text(json.dumps(mine))
        write_parameters("first", count=2)
        page = launcher.write("quick").read_text()
        assert json.loads(copy.read_text()) == mine
        assert "[first](quick/lab/first.ipynb) (with changes of yours" in page
        copy.unlink()
        assert "changes of yours" not in launcher.write("quick").read_text()
        assert copy.exists()

    def test_a_notebook_that_parameters_would_not_reach_opens_nothing_and_says_so(self):
        path = Path("notebooks/first.ipynb")
        path.write_text(path.read_text().replace('"parameters"', '"other"'))
        name, _, state = self.rows()["first"]
        assert name == "first", "no link"
        assert "the tag parameters" in state

    @pytest.mark.parametrize("root", [True, False])
    def test_what_follows_two_dashes_goes_to_jupyterlab_and_root_is_told_what_to_do(self, root, monkeypatch):
        became = []
        monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
        monkeypatch.setattr(os, "execv", lambda path, arguments: became.append(arguments))
        _, said = run_and_read(["lab", "--profile", "quick"])
        assert ("lab -- --allow-root" in said) is root
        assert became[0][1:3] == ["-m", "jupyterlab"]
        assert "--LabApp.default_url=/lab/tree/outputs/start.md" in became[0]
        given = ["--allow-root", "--ip=0.0.0.0", "--no-browser", "--port", "8889"]
        _, said = run_and_read(["lab", "--", *given])
        assert said == ""
        assert [arguments[6:] for arguments in became] == [[], given]


def test_the_real_notebooks_ask_something(monkeypatch):
    monkeypatch.chdir(ROOT)
    for notebook in Path("notebooks").glob("*.ipynb"):
        question = launcher.question(notebook)
        assert 20 < len(question) < 400, notebook


class TestCopies:
    """The notebooks that the page opens."""

    @pytest.fixture(autouse=True)
    def real(self, tmp_path, monkeypatch):
        for name in ("notebooks", "parameters"):
            shutil.copytree(ROOT / name, tmp_path / name)
        monkeypatch.chdir(tmp_path)

    def test_one_has_the_parameters_of_the_profile_and_the_rest_of_the_notebook(self):
        notebook, file = Path("notebooks/devices.ipynb"), Path("parameters/quick/devices.yaml")
        before = notebook.read_bytes()
        path, changed = launcher.copy(notebook, file, "quick")
        assert (path, changed) == (Path("outputs/quick/lab/devices.ipynb"), False)
        values = injected(path)
        assert values == {**profile.plan_notebook("devices", file).parameters, "outputs": ".."}
        assert (path.parent / values["outputs"]).resolve() == Path("outputs/quick").resolve()
        assert [one for one in cells(path) if "# Parameters" not in one.source] == cells(notebook)
        assert notebook.read_bytes() == before

    def test_outputs_are_no_change_and_go_where_the_parameters_are_others(self):
        notebook, file = Path("notebooks/devices.ipynb"), Path("parameters/quick/devices.yaml")
        path, _ = launcher.copy(notebook, file, "quick")
        run = json.loads(path.read_text())
        code = next(cell for cell in run["cells"] if cell["cell_type"] == "code")
        code["outputs"], code["execution_count"] = [{"output_type": "stream", "name": "stdout", "text": ["x"]}], 1
        path.write_text(json.dumps(run))
        assert launcher.copy(notebook, file, "quick") == (path, False)
        assert json.loads(path.read_text()) == run
        file.write_text(re.sub("(?m)^batch_size: .*", "batch_size: 33", file.read_text()))
        assert launcher.copy(notebook, file, "quick") == (path, False)
        assert injected(path)["batch_size"] == 33
        assert '"text": ["x"]' not in path.read_text()

    @pytest.mark.parametrize("text", ["", "no notebook"])
    def test_what_lies_in_its_place_and_is_none_is_left_alone(self, text):
        path = Path("outputs/quick/lab/claims.ipynb")
        path.parent.mkdir(parents=True)
        path.write_text(text)
        assert launcher.copy(Path("notebooks/claims.ipynb"), None, "quick") == (path, True)
        assert path.read_text() == text


def injected(path):
    """What the cell that papermill puts in sets."""
    cells = json.loads(path.read_text())["cells"]
    (source,) = ("".join(c["source"]) for c in cells if "injected-parameters" in c["metadata"].get("tags", []))
    return {node.targets[0].id: ast.literal_eval(node.value) for node in ast.parse(source).body}
