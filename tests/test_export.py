"""Pages, paper and the appendix: self-contained, the same bytes from the same results, and nothing is invented."""

import base64
import hashlib
import json
import re
import shutil
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import nbformat
import numpy as np
import pytest
import yaml
from test_suite import make_project, printed, run_and_read, write_notebook, write_parameters

from benchlib import manifest, tables
from benchlib.errors import BenchlibError
from benchlib.paper import appendix
from benchlib.report import pdf
from benchlib.report.export import export_html
from benchlib.suite import execute

MADE = Path("outputs/quick/appendix")
SIZES = {"a4": (210, 297), "letter": (215.9, 279.4)}  # millimetres
DATE = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""One pixel."""


def captions(text):
    """Of figures, then of tables."""
    found = [re.findall(f"<{name}>(.*?)</{name}>", text) for name in ("figcaption", "caption")]
    return [re.sub("<.*?>", "", caption) for kind in found for caption in kind]


class TestPage:
    """The page of a notebook with all that a report has in it."""

    @pytest.fixture
    def notebook(self, tmp_path):
        (tmp_path / "pixel.png").write_bytes(base64.b64decode(PNG))
        row = "<tr>" + "<td>1.25</td>" * 14 + "</tr>"
        frame = f"<table class='dataframe'><caption>All</caption>{row}</table>"
        figure = f'<figure><img src="data:image/png;base64,{PNG}"><figcaption>Throughput</figcaption></figure>'
        shown = [
            {"image/svg+xml": "<svg xmlns='http://www.w3.org/2000/svg'/>", "text/plain": "<Figure>"},
            {"text/html": f"<h3>Results</h3>{frame}", "text/plain": "frame"},
            {"text/html": figure},
            {"text/html": f"{figure}<table><caption>Some</caption></table><table></table>"},
            {"application/javascript": "alert(1)", "text/plain": "a script"},
        ]
        outputs = [nbformat.v4.new_output("display_data", data) for data in shown]
        code = nbformat.v4.new_code_cell("secret = 1  # how", execution_count=1, outputs=outputs)
        cells = [
            nbformat.v4.new_markdown_cell("# What came out\n\n[a link](https://example.org/)"),
            nbformat.v4.new_markdown_cell("## Results\n\n![a pixel](pixel.png)\n\n```python\nx = 1\n```"),
            code,
        ]
        metadata = {"widgets": {"application/vnd.jupyter.widget-state+json": {"state": {}}}}
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), tmp_path / "report.ipynb")
        return tmp_path / "report.ipynb"

    @pytest.fixture
    def page(self, notebook):
        export_html(notebook, notebook.with_name("report.html"))
        return notebook.with_name("report.html")

    def test_it_shows_results_and_code_where_asked_to(self, notebook, page):
        export_html(notebook, notebook.with_name("code.html"), code=True)
        for file, shown in ((page, False), (notebook.with_name("code.html"), True)):
            text = file.read_text()
            assert bool(re.search("secret.*=.*1.*# how", text)) is shown
            assert "In\xa0[1]" not in text
            assert "<title>What came out</title>" in text
            assert text.count(f"data:image/png;base64,{PNG}") == 3
            assert captions(text) == ["Figure 1. Throughput", "Figure 2. Throughput", "Table 1. All", "Table 2. Some"]

    def test_the_same_results_give_the_same_bytes_though_cells_have_other_names(self, notebook, page):
        content = nbformat.read(notebook, as_version=4)
        for number, cell in enumerate(content.cells):
            cell.id = f"other{number}"
        nbformat.write(content, notebook)
        export_html(notebook, notebook.with_name("again.html"))
        assert notebook.with_name("again.html").read_bytes() == page.read_bytes()

    def test_it_has_contents_that_lead_to_each_heading(self, page):
        text = page.read_text()
        contents = re.search("<nav.*?</nav>", text, re.DOTALL).group()
        targets = re.findall('href="#([^"]+)"[^>]*>Results<', contents)
        assert targets == ["results", "results-"]
        assert all(text.count(f'id="{target}"') == 1 for target in targets)

    def test_its_source_names_nothing_to_load(self, page):
        text = page.read_text()
        assert "<script" not in text
        assert re.findall(r"https?://[^\s\"'<]*", text) == ["https://example.org/"]

    @pytest.mark.parametrize(
        "html",
        [
            *("<img src='https://example.org/x.png'>", "<script>fetch('/')</script>", "<style>@import 'x.css'</style>"),
            *("<p style='background: url(x.png)'></p>", "<link rel='stylesheet' href='x.css'>"),
        ],
    )
    def test_what_would_be_loaded_is_refused(self, notebook, html):
        content = nbformat.read(notebook, as_version=4)
        content.cells[2].outputs[1].data["text/html"] = html
        nbformat.write(content, notebook)
        with pytest.raises(BenchlibError, match="the page would load") as refused:
            export_html(notebook, notebook.with_name("refused.html"))
        assert re.match(r"<\w+", html).group() in str(refused.value)
        assert not notebook.with_name("refused.html").exists()

    def test_a_missing_image_is_named(self, notebook):
        notebook.with_name("pixel.png").unlink()
        with pytest.raises(BenchlibError, match=r'the page would load <img .*src="pixel\.png"'):
            export_html(notebook, notebook.with_name("report.html"))


class TestPaper:
    """What surrounds the printing; a script stands in for the browser."""

    @pytest.fixture
    def page(self, tmp_path):
        (tmp_path / "page.html").write_text("<html><head></head><body>text</body></html>")
        return tmp_path / "page.html"

    @pytest.fixture
    def browser(self, tmp_path, monkeypatch):
        """A browser that does what a test writes; ``$page`` and ``$printed`` are what it is asked for."""
        file = tmp_path / "bin" / "chromium"
        file.parent.mkdir()
        monkeypatch.setenv("PATH", f"{file.parent}:/usr/bin:/bin")

        def does(lines):
            taken = '--print-to-pdf=*) printed="${a#*=}";; file:*) page="${a#file://}";;'
            file.write_text(f'#!/bin/sh\nfor a in "$@"; do case "$a" in {taken} esac; done\n{lines}\n')
            file.chmod(0o755)

        return does

    def test_the_paper_is_put_into_the_page_and_the_date_into_the_pdf(self, page, browser, monkeypatch):
        ids = "/ID (node00000213) /ID (node00000215)"
        monkeypatch.setenv("PYTHONSTARTUP", "mine.py")
        date = """test -z "$PYTHONSTARTUP" && echo "/CreationDate (D:20260101000000+00'00')"""
        browser(f"""({date} {ids}"; cat "$page"; echo %%EOF) > "$printed" """)
        pdf.print_pdf(page, page.with_suffix(".pdf"), "letter", DATE)
        made = page.with_suffix(".pdf").read_text()
        assert "/CreationDate (D:20260504030201+00'00') /ID (node00000000) /ID (node00000002)" in made
        assert "<style>@page { size: letter }</style></head>" in made
        assert sorted(path.name for path in page.parent.iterdir()) == ["bin", "page.html", "page.pdf"]
        assert "size" not in page.read_text()

    def test_no_browser_says_what_to_do(self, page, monkeypatch):
        monkeypatch.setenv("PATH", "")
        with pytest.raises(pdf.NoBrowser, match="there is no Chromium here: install it"):
            pdf.print_pdf(page, page.with_suffix(".pdf"), "a4", DATE)
        assert not page.with_suffix(".pdf").exists()

    @pytest.mark.parametrize(
        ("lines", "told"),
        [
            ("echo no display; exit 3", "exit code 3: no display"),
            ('cat "$page" > "$printed"', "no whole file"),
            ("exec sleep 60", "not ended after"),
        ],
    )
    def test_a_browser_that_fails_is_named_and_leaves_nothing(self, page, browser, monkeypatch, lines, told):
        monkeypatch.setattr(pdf, "PATIENCE_S", 0.5)
        browser(lines)
        with pytest.raises(BenchlibError, match=told):
            pdf.print_pdf(page, page.with_suffix(".pdf"), "a4", DATE)
        assert sorted(path.name for path in page.parent.iterdir()) == ["bin", "page.html"]


class TestAppendix:
    """The bundle of a toy project's results; nothing is executed or printed."""

    @pytest.fixture(autouse=True)
    def project(self, tmp_path, monkeypatch):
        make_project(tmp_path / "project", monkeypatch, ["first", "second"])
        monkeypatch.setattr(appendix, "print_pdf", printed)
        for name in (*appendix.PROJECT, appendix.LOCK):
            Path(name).write_text(name)

        def pretend(notebook, parameters, output):
            name, folder = notebook.stem, Path(parameters["outputs"])
            content = nbformat.read(notebook, as_version=4)
            made = {"figures": [f"figures/{name}.svg"], "tables": [f"tables/{name}.csv"], "measurements": [name]}
            paths = [f"figures/{name}.svg", f"tables/{name}.csv", f"measurements/{name}.parquet"]
            for path in ["tables/measurements.csv"] if name == "report" else paths:
                (folder / path).parent.mkdir(exist_ok=True)
                (folder / path).write_text(path)
            scrap = {"name": "summary", "data": made, "encoder": "json", "version": 1}
            glued = {"application/scrapbook.scrap.json+json": scrap}
            content.cells[-1].outputs = [
                nbformat.v4.new_output("stream", text=f"at {Path.cwd()}/x and {sys.executable}\n"),
                nbformat.v4.new_output("display_data", glued, metadata={"scrapbook": {"data": True}}),
            ]
            nbformat.write(content, output)
            return None if name == "report" else made

        monkeypatch.setattr(execute, "execute", pretend)
        write_notebook("report", "# A report", "secret = 1")
        assert run_and_read()[0] == 0
        for kind in ("certificates", "ceilings"):
            Path("outputs/quick", kind).mkdir()
            Path("outputs/quick", kind, "1.json").write_text(json.dumps({"failure": f"in {Path.cwd()}/x.py, line 1"}))

    def make(self, *options):
        self.code, self.said = run_and_read(["appendix", *options])
        return {p.relative_to(MADE).as_posix(): p.read_text() for p in MADE.rglob("*") if p.is_file()}

    def test_it_has_everything_and_the_zip_has_the_same(self):
        files = self.make()
        assert (self.code, self.said.splitlines()[-1]) == (0, f"appendix: {MADE}, {MADE}.zip")
        executed = [f"executed/{n}.{kind}" for n in ("first", "second") for kind in ("html", "ipynb", "pdf")]
        assert sorted(files) == sorted(
            [
                *("CITATION.cff", "LICENSE", "README.md", "pyproject.toml", "requirements.lock", "report.html"),
                *("report.pdf", "manifest.json", "certificates/1.json", "ceilings/1.json"),
                *(*executed, "executed/report.ipynb"),
                *("figures/first.svg", "figures/second.svg", "tables/first.csv", "tables/second.csv"),
                *("tables/measurements.csv", "measurements/first.parquet", "measurements/second.parquet"),
                *("parameters/quick/first.yaml", "parameters/quick/second.yaml"),
            ]
        )
        with zipfile.ZipFile(f"{MADE}.zip") as archive:
            assert {name: archive.read(name).decode() for name in archive.namelist()} == files
        assert [path.name for path in MADE.parent.glob(".partial*")] == []

    def test_the_same_results_give_the_same_bytes(self):
        self.make()
        before = Path(f"{MADE}.zip").read_bytes()
        self.make()
        assert Path(f"{MADE}.zip").read_bytes() == before

    def test_code_is_shown_where_asked_for_but_not_in_the_report(self):
        assert "scrapbook.scrap" not in self.make()["executed/first.html"]
        files = self.make("--appendix", "code", "--paper", "letter")
        assert "scrapbook.scrap" in files["executed/first.html"]
        assert "secret" not in files["report.html"]
        assert files["report.pdf"] == "report.html on letter"

    def test_nothing_names_a_folder_of_this_machine(self):
        files = self.make()
        assert "at &lt;project&gt;/x and &lt;environment&gt;/bin/python" in files["executed/first.html"]
        for folder in {str(Path.cwd()), sys.prefix, str(Path.home())}:
            assert [path for path, text in files.items() if re.search(rf"{folder}(?!\w)", text)] == []

    def test_the_manifest_says_what_each_file_is_and_what_made_it(self):
        files = self.make()
        manifest = json.loads(files["manifest.json"])
        assert set(manifest["files"]) == set(files) - {"manifest.json"}
        for path, entry in manifest["files"].items():
            assert entry["sha256"] == hashlib.sha256((MADE / path).read_bytes()).hexdigest()
        assert manifest["files"]["figures/first.svg"]["notebook"] == "first"
        assert manifest["notebooks"]["first"]["parameters"]["count"] == 1
        assert {"python", "benchlib"} <= set(manifest["notebooks"]["first"]["versions"])

    @pytest.mark.parametrize(
        ("path", "told", "left_out"),
        [
            ("measurements/first.parquet", "measurements/first.parquet: it is gone", 1),
            ("figures/second.svg", "figures/second.svg: it is gone", 1),
            ("tables/measurements.csv", "tables/measurements.csv: it is gone", 1),
            ("certificates/1.json", "certificates: there are none", 1),
            ("notebooks/first.ipynb", "executed/first.ipynb: it is gone", 3),
            ("notebooks/first.json", "notebooks/first.ipynb: there is no whole record", 7),
        ],
    )
    def test_what_is_gone_is_named_and_the_rest_is_bundled(self, path, told, left_out):
        whole = self.make()
        Path("outputs/quick", path).unlink()
        files = self.make()
        assert self.code == 1
        assert self.said.endswith(f"missing in it, 1:\n  {told}\n")
        assert f"- {told}\n" in files["README.md"]
        assert len(whole) - len(files) == left_out

    @pytest.mark.parametrize(
        ("path", "told"),
        [
            ("outputs/quick/measurements/first.parquet", "it differs from the one that first made"),
            ("requirements.lock", "it has changed since the notebooks were executed"),
        ],
    )
    def test_what_is_not_what_was_measured_is_left_out(self, path, told):
        text = Path(path).read_text()
        Path(path).write_text(text + " ")
        files, name = self.make(), path.removeprefix("outputs/quick/")
        assert (self.code, self.said.splitlines()[-1]) == (1, f"  {name}: {told}")
        assert name not in files

    def test_a_stale_result_is_bundled_and_named(self):
        record = manifest.read(Path("outputs/quick"), "first")
        whole = self.make()
        path = manifest.path_of(Path("outputs/quick"), "first")
        path.write_text(json.dumps(record | {"stale": "these have changed: benchlib"}))
        files = self.make()
        told = "executed/first.ipynb: is an older result, stale: these have changed: benchlib"
        assert self.code == 1
        assert f"missing in it, 1:\n  {told}\n" in self.said
        assert f"- {told}" in files["README.md"]
        assert set(files) == set(whole)

    def test_the_parameters_are_those_that_were_executed(self):
        write_parameters("first", count=2)
        assert yaml.safe_load(self.make()["parameters/quick/first.yaml"])["count"] == 1

    def test_without_a_browser_pages_are_made_and_the_exit_code_is_0(self, monkeypatch):
        monkeypatch.setattr(appendix, "print_pdf", pdf.print_pdf)
        monkeypatch.setenv("PATH", "")
        files = self.make()
        assert self.code == 0
        assert self.said.count("no PDF was made, for there is no Chromium here") == 1
        assert "no PDF was made" in files["README.md"]
        assert "executed/first.html" in files
        assert not [path for path in files if path.endswith(".pdf")]

    def test_nothing_to_bundle_is_refused(self):
        assert run_and_read(["appendix", "--profile", "quik"])[0] == 2
        code, said = run_and_read(["appendix", "--outputs", "elsewhere"])
        assert (code, "elsewhere has no results: make them with" in said) == (2, True)
        for record in Path("outputs/quick/notebooks").glob("*.json"):
            record.write_text("{")
        code, said = run_and_read(["appendix"])
        assert (code, "no notebook has succeeded" in said) == (2, True)
        assert not MADE.exists()


@pytest.mark.slow
class TestInABrowser:
    """Pages that Chromium prints."""

    @pytest.fixture(scope="class")
    @staticmethod
    def page(tmp_path_factory):
        """A page with all that is hard to print."""
        if not shutil.which("chromium"):
            pytest.skip("NO CHROMIUM HERE: how pages print is not tested")
        folder = tmp_path_factory.mktemp("page")
        nbformat.write(nbformat.v4.new_notebook(cells=hard_to_print()), folder / "hard.ipynb")
        export_html(folder / "hard.ipynb", folder / "hard.html", code=True)
        return folder / "hard.html"

    @pytest.fixture(scope="class", params=SIZES)
    @staticmethod
    def paper(request, page):
        """Name of the paper, the PDF, and its pages as images."""
        import pypdfium2

        file = page.with_suffix(f".{request.param}.pdf")
        pdf.print_pdf(page, file, request.param, DATE)
        return request.param, file, pypdfium2.PdfDocument(file)

    def test_the_paper_is_what_was_asked_for(self, paper):
        name, _, document = paper
        points = [length / 25.4 * 72 for length in SIZES[name]]
        assert document[0].get_size() == pytest.approx(points, abs=1)

    def test_the_same_page_gives_the_same_bytes(self, page, paper, tmp_path):
        name, file, _ = paper
        pdf.print_pdf(page, tmp_path / "again.pdf", name, DATE)
        assert (tmp_path / "again.pdf").read_bytes() == file.read_bytes()

    def test_no_figure_is_cut(self, paper):
        """Each has a red bar at its top and a blue one at its bottom, on the same page."""
        found = [[bars(image, colour) for colour in ((255, 0, 0), (0, 0, 255))] for image in images(paper[2])]
        assert all(red == blue for red, blue in found), found
        assert sum(red for red, _ in found) == len(HEIGHTS) ** 2


HEIGHTS = [(2.5, 3.5), (6.1, 7.2), (4.0, 7.2)]  # of the figures in each section, with their widths, in inches


def hard_to_print():
    """Cells with figures of all shapes after text of different lengths."""
    text = "A sentence that is about as long as those of a report, with numbers such as 0.25 [0.22, 0.27]. "
    cells = [nbformat.v4.new_markdown_cell("# Hard to print")]
    for section in range(len(HEIGHTS)):
        cells.append(nbformat.v4.new_markdown_cell(f"## Section {section}\n\n{text * (3 + 9 * section)}"))
        for height, width in HEIGHTS[section:] + HEIGHTS[:section]:
            shown = {"text/html": tables.image(drawing(width, height), text * 2).data}
            cells.append(nbformat.v4.new_code_cell(outputs=[nbformat.v4.new_output("display_data", shown)]))
    return cells


def drawing(width, height):
    """An SVG of this size in inches, with a red bar at its top and a blue one at its bottom."""
    size = f'width="{width * 72}pt" height="{height * 72}pt" viewBox="0 0 {width * 72} {height * 72}"'
    bar = '<rect width="100%" height="6"'
    ends = f'{bar} fill="#f00"/>{bar} y="{height * 72 - 6}" fill="#00f"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{ends}</svg>'.encode()


def images(document):
    return [np.asarray(page.render(scale=1).to_pil().convert("RGB")).astype(int) for page in document]


def bars(image, colour):
    """How many bars of a colour are in the page, one below another."""
    rows = (abs(image - colour).sum(axis=2) < 60).sum(axis=1) > 40
    return int((np.diff(rows.astype(int), prepend=0) == 1).sum())
