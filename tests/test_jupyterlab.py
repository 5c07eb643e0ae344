"""JupyterLab in a real browser, judged by the notebooks that it saves: the start page, a notebook with a profile's
parameters, one run with changed ones, and one interrupted in the middle.
"""

import contextlib
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urljoin

import nbformat
import psutil
import pytest
from patience import until
from playwright.sync_api import expect

from benchlib import env_vars

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
DOUBLES = ROOT / "tests" / "doubles"
TOKEN = "a-token-of-the-tests"
SECONDS = 240  # for what takes half a minute on a quiet machine

CONFIG = {
    "ServerApp": {"open_browser": False, "allow_root": True, "port": 0},
    "IdentityProvider": {"token": TOKEN},
    "LabApp": {"news_url": None, "check_for_updates_class": "jupyterlab.NeverCheckForUpdate"},
}

PARAMETERS = """
workload = "cnn"
data = "digits"
hyperparameters = {{"image_size": 8}}
batch_size = 16
subjects = [
    {subjects}
]
devices = ["cpu"]
threads = [1]
settings = {{"precision": 0.9, "pilot": 4, "budget_s": 12, "block_s": 0.02, "margin": 0.05}}  # the pilot is enough
outputs = None
"""
"""Of the notebook ``devices``, as they are typed."""

TUNED = '{"framework": "pytorch", "mode": "eager", "lane": "tuned"},'
DEFAULT = '{"framework": "pytorch", "mode": "eager", "lane": "default"},'

LEARNING = {  # parameters of a profile of one's own
    **{"workload": "cnn", "data": "digits", "device": "cpu", "batch_size": 96, "hyperparameters": {"image_size": 8}},
    "subjects": [{"framework": "pytorch", "mode": "eager", "lane": "tuned", "learning_rates": [0.01]}],
    **{"train_samples": 480, "seeds": [3], "epochs": 3, "most_epochs": 3, "threshold": 0.9},
}

EXPLORING = [
    "burn_ms = 3.0",
    "from benchlib import Condition, Lab",
    'toy = Condition(workload="toy", framework="toy")\n'
    'slower = toy.but(hyperparameters={"burn_ms": burn_ms})\n'
    "comparison = Lab().compare([toy, slower], precision=0.9, budget_s=25, block_s=0.15)\n"
    "comparison",
    "comparison.plot()",
    "comparison.measurements[0].plot()",
    "comparison.certificates[slower.key]",
    "comparison.certificates[slower.key].plot()",
    "comparison.ledger()",
]
"""A notebook as one may write it oneself, with the tests' own framework; the objects show themselves."""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project without results, and with one more notebook."""
    folder = tmp_path_factory.mktemp("project")
    ignore = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
    for name in ("benchlib", "notebooks", "parameters"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignore)
    for name in ("README.md", "requirements.lock"):
        shutil.copy(ROOT / name, folder / name)
    turn = folder / "benchlib/runner/machine_lock.py"  # of its own: nobody else on this machine is waited for
    text = turn.read_text(encoding="utf-8")
    assert "/tmp/benchlib-measuring.lock" in text
    turn.write_text(text.replace("/tmp/benchlib-measuring.lock", str(folder / "machine.lock")), encoding="utf-8")
    cells = [nbformat.v4.new_code_cell(source) for source in EXPLORING]
    kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernelspec})
    nbformat.write(notebook, folder / "notebooks/exploring.ipynb")
    return folder


@pytest.fixture(scope="module")
def server(project, tmp_path_factory):
    """``python -m benchlib lab`` in the project, and its address."""
    settings = tmp_path_factory.mktemp("jupyter")
    (settings / "config").mkdir()
    (settings / "config" / "jupyter_server_config.json").write_text(json.dumps(CONFIG))
    environment = {name: value for name, value in os.environ.items() if name != "BENCHLIB_PROGRESS"}
    environment |= {f"JUPYTER_{name}_DIR": str(settings / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    environment["PYTHONPATH"] = os.pathsep.join([str(project), str(DOUBLES)])
    environment[env_vars.WORKER_PATH] = str(DOUBLES)
    # a shell's background jobs, such as tests may be, ignore Ctrl-C, and so would what they start
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    log = settings / "log.txt"
    with log.open("wb") as said:
        command = [sys.executable, "-m", "benchlib", "lab"]
        process = subprocess.Popen(command, cwd=project, env=environment, stdout=said, stderr=said, preexec_fn=heed)

    def address():
        assert process.poll() is None, log.read_text()
        return re.search(r"http://127\.0\.0\.1:(\d+)(/\S*)\?token=", log.read_text())

    try:
        found = until(address, 60)
        yield process, f"http://127.0.0.1:{found[1]}", found[2]
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()


@pytest.fixture
def page(browser, server):
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    _, address, _ = server
    page.goto(f"{address}/lab?reset&token={TOKEN}")
    page.wait_for_selector("#jp-main-dock-panel")
    yield page
    page.close()


class Notebook:
    """A notebook that is open in the browser. What it holds is read from its file, after saving it."""

    def __init__(self, page, project, place):
        self.page, self.path, self.place = page, project / place, place
        self.panel = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
        self.wait_until_connected()
        self.wait_until_idle()

    def wait_until_connected(self):
        """Before it is told to run: a page that has no connection to its kernel takes that, and runs nothing. It shows
        "idle" before it has one; the server knows.
        """
        sessions = urljoin(self.page.url, "/api/sessions")

        def connected():
            answer = self.page.request.get(sessions, headers={"Authorization": f"token {TOKEN}"}).json()
            kernels = [one["kernel"] for one in answer if one["path"] == self.place]
            return any(one["connections"] and one["execution_state"] == "idle" for one in kernels)

        until(connected, SECONDS)

    def wait_until_idle(self):
        indicator = self.panel.locator(".jp-Notebook-ExecutionIndicator")
        expect(indicator).to_have_attribute("data-status", "idle", timeout=60_000)

    def type_parameters(self, text):
        cell = self.panel.locator(".jp-CodeCell").first
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(text.strip())

    def choose(self, menu, entry):
        self.page.locator(".lm-MenuBar-itemLabel", has_text=re.compile(f"^{menu}$")).click()
        self.page.locator(".lm-Menu-itemLabel", has_text=re.compile(f"^{entry}$")).click()

    def start_all(self):
        """Choose to run all cells; again, as a user would, where that was taken before the kernel was connected, and
        nothing ran.
        """
        prompts = self.panel.locator(".jp-CodeCell .jp-InputArea-prompt")
        before = prompts.first.inner_text()
        for _ in range(3):
            self.choose("Run", "Run All Cells")
            try:
                expect(prompts.first).not_to_have_text(before, timeout=20_000)
                return
            except AssertionError:
                continue
        raise AssertionError(f"nothing runs: the first cell's prompt stays {before!r}")

    def code(self):
        """The code cells of the file, as saved now."""
        self.page.keyboard.press("Control+s")
        time.sleep(0.5)
        return until(self._saved_code, 30)

    def _saved_code(self):
        """None while the file is being written."""
        with contextlib.suppress(nbformat.reader.NotJSONError):
            return [cell for cell in nbformat.read(self.path, as_version=4).cells if cell.cell_type == "code"]

    def run_all(self, seconds):
        """Run all cells, and wait until all have run or one has failed; the cells."""
        before = max((cell.execution_count or 0 for cell in self.code()), default=0)
        self.start_all()

        def over():
            cells = self.code()
            counts = [cell.execution_count for cell in cells]
            run = [cell for cell, count in zip(cells, counts, strict=True) if count and count > before]
            return cells if len(run) == len(cells) or errors(run) else None

        return until(over, seconds)


def outputs(cells, kind):
    """What cells put out of a kind: texts of a MIME type, or errors."""
    return [output["data"][kind] for cell in cells for output in cell.outputs if kind in output.get("data", {})]


def errors(cells):
    return [output for cell in cells for output in cell.outputs if output.output_type == "error"]


def measured(project, profile="quick"):
    """The measurements on disk, with the time when each was written."""
    return {path.name: path.stat().st_mtime_ns for path in project.glob(f"outputs/{profile}/measurements/*.parquet")}


def workers(server):
    """The workers that run for this JupyterLab's kernels."""
    found = []
    for process in psutil.Process(server.pid).children(recursive=True):
        try:
            command = " ".join(process.cmdline())  # of the project's own copy
            if "/benchlib/worker/__main__.py" in command and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def test_it_opens_on_a_rendered_page_of_links_to_the_notebooks_and_their_states(page, server, project):
    _, address, opens_on = server
    page.goto(f"{address}{opens_on}?token={TOKEN}")
    rendered = page.locator(".jp-MarkdownViewer .jp-RenderedMarkdown")
    expect(rendered.locator("h1")).to_contain_text("benchlib", timeout=60_000)
    rows = rendered.locator("tbody tr")
    expect(rows).to_have_count(len(list((project / "notebooks").glob("*.ipynb"))))
    devices = rows.filter(has=page.get_by_role("link", name="devices", exact=True))
    expect(devices.locator("td").last).to_have_text("none")
    expect(devices).to_contain_text("How much faster does a network train on a GPU than on the CPU")
    devices.get_by_role("link", name="devices", exact=True).click()
    expect(page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")).to_contain_text("Devices: what a GPU gives")


def test_the_page_of_a_profile_opens_its_notebooks_with_its_parameters(page, server, project):
    _, address, opens_on = server
    folder = project / "parameters/mine"
    folder.mkdir()
    (folder / "learning_rate.yaml").write_text(json.dumps(LEARNING), encoding="utf-8")
    committed = {path.name: path.read_bytes() for path in project.glob("notebooks/*.ipynb")}
    written = "from benchlib.suite import launcher; launcher.write('mine')"
    subprocess.run([sys.executable, "-c", written], cwd=project, check=True)
    page.goto(f"{address}{opens_on}?token={TOKEN}")
    rendered = page.locator(".jp-MarkdownViewer .jp-RenderedMarkdown")
    expect(rendered).to_contain_text("Profile mine", timeout=60_000)
    expect(rendered.get_by_role("link", name="devices", exact=True)).to_have_count(0)  # mine has no parameters for it
    rendered.get_by_role("link", name="learning_rate", exact=True).click()
    notebook = Notebook(page, project, "outputs/mine/lab/learning_rate.ipynb")
    cell = notebook.panel.locator(".jp-CodeCell").nth(1)  # papermill puts the profile's parameters after the first
    expect(cell).to_contain_text('outputs = ".."')
    expect(cell).to_contain_text("batch_size = 96")
    cells = notebook.run_all(SECONDS)
    assert not errors(cells)
    assert len(measured(project, "mine")) == 1
    assert not measured(project)
    assert len(list(project.glob("outputs/mine/events/cnn/pytorch/eager/*/*/*tfevents*"))) == 1
    assert {path.name: path.read_bytes() for path in project.glob("notebooks/*.ipynb")} == committed


def test_a_notebook_runs_with_changed_parameters_and_then_measures_only_what_is_new(page, server, project):
    _, address, _ = server
    page.goto(f"{address}/lab/tree/notebooks/devices.ipynb?reset")
    notebook = Notebook(page, project, "notebooks/devices.ipynb")
    notebook.type_parameters(PARAMETERS.format(subjects=TUNED))
    cells = notebook.run_all(SECONDS)
    assert "batch_size = 16" in cells[0].source
    assert not errors(cells)
    first = measured(project)
    assert len(first) == 4, "the pilot of one comparison"
    shown = "".join(outputs(cells, "text/html"))
    assert "data:image/svg+xml;base64," in shown
    assert '<progress value="4" max="4"></progress> comparing 2 at cnn batch 16: 4/4, done in' in shown

    notebook.type_parameters(PARAMETERS.format(subjects=f"{TUNED}\n    {DEFAULT}"))
    cells = notebook.run_all(SECONDS)
    assert not errors(cells)
    second = measured(project)
    assert first.items() < second.items(), "what was there is as it was"
    assert len(second) == 8, "the pilot of another comparison"
    shown = "".join(outputs(cells, "text/html"))
    assert len(re.findall("<progress[^>]*></progress> comparing", shown)) == 1, "of the comparison that was new"
    assert "PyTorch eager default" in shown
    assert "data:image/svg+xml;base64," in shown


def test_an_interrupt_ends_the_workers_keeps_what_was_measured_and_it_goes_on_from_there(page, server, project):
    process, address, _ = server
    page.goto(f"{address}/lab/tree/notebooks/exploring.ipynb?reset")
    notebook = Notebook(page, project, "notebooks/exploring.ipynb")
    notebook.type_parameters("burn_ms = 5.0")
    before = measured(project)
    notebook.start_all()
    told = re.compile(r"comparing 2 at toy batch 32: [1-4]/5(, .+ left)?: ")
    bar = notebook.panel.locator(".jp-OutputArea-output", has_text=told).locator("progress")
    expect(bar).to_have_attribute("value", re.compile("[1-4]"), timeout=1000 * SECONDS)
    until(lambda: workers(process), 30)
    kept = measured(project)
    assert len(kept) > len(before)
    notebook.choose("Kernel", "Interrupt Kernel")
    until(lambda: not workers(process), 30)
    notebook.wait_until_idle()
    cells = until(lambda: errors(cells := notebook.code()) and cells, 30)
    assert [(error.ename, len(error.traceback)) for error in errors(cells)] == [("KeyboardInterrupt", 1)]
    assert "stopped after" in "".join(outputs(cells, "text/html"))
    after = measured(project)
    assert kept.items() <= after.items()
    assert len(after) < len(before) + 5
    assert not workers(process)

    cells = notebook.run_all(SECONDS)
    assert cells[0].source == "burn_ms = 5.0"
    assert not errors(cells)
    assert len(measured(project)) == len(before) + 5
    assert after.items() < measured(project).items(), "it went on from there"
    comparison, *figures, ledger = outputs(cells[2:], "text/html")[-6:]
    assert "Throughput relative to" in comparison
    assert ["data:image/svg+xml;base64," in shown for shown in figures] == [True, True, False, True]
    assert "MALLOC" not in ledger, "nothing is set in the default lane"
