"""The report's page in a real browser: explored, sent, printed, without JavaScript, by keyboard, in the dark."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import explored
import numpy as np
import pandas as pd
import pypdfium2
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from benchlib import tables
from benchlib.plotting.naming import spelled
from benchlib.report import pdf
from benchlib.report.picture import GLYPHS
from benchlib.stats import frame as tidy

pytestmark = pytest.mark.slow

DATE = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = ".view tbody tr:not(.setting) >> visible=true"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explored")
    explored.results(folder)
    explored.report(folder)
    return folder


@pytest.fixture
def page(browser: Browser, folder: Path) -> Iterator[Page]:
    """The report, opened; what it asks for beside itself, and what goes wrong in it, fails the test."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: asked.append(f"an error in the page: {error}"))
    page.goto(address(folder))
    yield page
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    page.close()


def address(folder: Path) -> str:
    return (folder / "report.html").as_uri()


def rows(page: Page) -> list[tuple[str, str]]:
    """Number and verdict of each ratio that is seen."""
    cells = [cell.lstrip("".join(GLYPHS.values())) for cell in page.locator(ROWS).locator("summary").all_inner_texts()]
    return sorted((" ".join(cell.split()[:3]), " ".join(cell.split()[3:])) for cell in cells)


def from_frame(folder: Path, baseline: str, notebook: str = "modes") -> list[tuple[str, str]]:
    """Number and verdict of each ratio relative to a subject, from the rows of the parquet file."""
    frame = tidy.load(folder / "tables" / f"{notebook}_frame.parquet")
    frame = frame[frame["quantity"].isin(["throughput_ratio", "pair_ratio"]) & (frame["baseline_subject"] == baseline)]
    return sorted((tables.ratio(row.estimate, row.low, row.high), row.verdict) for row in frame.itertuples())


def choose(page: Page, baseline: str) -> None:
    page.locator(".views > label").filter(has_text=re.compile(f"^{spelled(baseline)}$")).click()


@pytest.mark.parametrize("baseline", [None, explored.MINDSPORE.subject, explored.GRAPH.subject])
@pytest.mark.parametrize("script", [True, False])
def test_the_ratios_for_a_baseline_are_shown_with_and_without_javascript(browser, folder, baseline, script) -> None:
    context = browser.new_context(java_script_enabled=script)
    page = context.new_page()
    page.goto(address(folder))
    if baseline:
        choose(page, baseline)
    assert rows(page) == from_frame(folder, baseline or explored.TORCH.subject)
    expect(page.locator(".caption >> visible=true")).to_contain_text(spelled(baseline or explored.TORCH.subject))
    drawn = page.locator(ROWS).evaluate_all("all => all.map(e => e.className)")
    legend = page.locator(".legend .verdict >> visible=true")
    named = legend.evaluate_all("all => all.map(e => e.className.split(' ')[1])")
    assert set(drawn) == set(named), "the legend is of what is shown"
    page.get_by_text("The numbers").first.click()
    expect(page.locator("details table").first).to_be_visible()
    context.close()


def test_what_is_behind_a_ratio_is_what_the_frame_has(page: Page, folder: Path) -> None:
    choose(page, explored.MINDSPORE.subject)
    frame = tidy.load(folder / "tables" / "modes_frame.parquet")
    frame = frame[(frame["quantity"] == "pair_ratio") & (frame["part"] == 2)]
    (row,) = (one for one in frame.itertuples() if one.baseline_subject == explored.MINDSPORE.subject)
    page.locator(ROWS).last.locator("summary").click()
    told = page.locator("dl >> visible=true").inner_text()
    control = tables.ratio(row.control, row.control_low, row.control_high)
    for text in (row.verdict, control, tables.spelled(row.label)):
        assert text in told
    key = re.search(r"benchlib trace tables/report_ratios\.csv (\w+)", told)[1]
    listed = pd.read_csv(folder / "tables" / "report_ratios.csv").set_index("key").loc[key]
    assert (listed["condition"], listed["relative to"]) == (row.label, row.baseline_label)


def test_a_filter_leaves_what_has_it(page: Page) -> None:
    labels = [label.splitlines()[0] for label in page.locator(".controls label").all_inner_texts()]
    assert sorted(labels) == ["batch size", "framework", "mode", "workload"], "what does not vary is no filter"
    page.locator("select[name=data-framework]").select_option("MindSpore")
    expect(page.locator(ROWS)).to_have_count(3)
    page.locator("select[name=data-workload]").select_option("gcn")
    expect(page.locator(ROWS)).to_have_count(1)
    expect(page.locator(".told")).to_have_text("1 ratios are shown.")
    expect(page.locator("caption", has_text="cnn").locator("visible=true")).to_have_count(0)


def test_every_control_is_reached_and_used_by_keyboard(page: Page, folder: Path) -> None:
    page.locator("select").last.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    chosen = page.locator("input:checked + label").inner_text()
    assert chosen == spelled(explored.MINDSPORE.subject)
    assert rows(page) == from_frame(folder, explored.MINDSPORE.subject)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("dl >> visible=true")).to_have_count(1)
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("() => document.activeElement.tagName"))
    assert {"SUMMARY", "BUTTON", "A"} <= reached


def test_nothing_else_may_run_or_be_loaded(page: Page) -> None:
    policy = page.locator("meta[http-equiv]").get_attribute("content")
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-")
    page.evaluate("() => { document.body.append(Object.assign(document.createElement('script'), {text: 'x = 1'})) }")
    assert page.evaluate("() => typeof x") == "undefined"


def test_a_table_sorts_by_numbers_and_back_and_leads_to_its_files(page: Page, folder: Path) -> None:
    page.get_by_text("The numbers").first.click()
    table = page.locator("details table").first
    head = table.get_by_role("button", name="throughput ratio")
    column = head.evaluate("button => button.parentElement.cellIndex") + 1

    def shown() -> list[float]:
        return [float(cell.split()[0]) for cell in table.locator(f"tbody td:nth-child({column})").all_inner_texts()]

    head.click()
    assert shown() == sorted(shown())
    assert head.locator("..").get_attribute("aria-sort") == "ascending"
    head.click()
    assert shown() == sorted(shown(), reverse=True)
    links = page.locator("a[href]:not([href^='#'])").evaluate_all("links => links.map(a => a.getAttribute('href'))")
    assert {"figures/modes_ratios.svg", "tables/modes_ratios.csv", "tables/report_ratios.csv"} <= set(links)
    assert all((folder / link).is_file() for link in links if not link.startswith("http"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_has_no_serious_complaint(browser: Browser, folder: Path, scheme: str) -> None:
    context = browser.new_context(color_scheme=scheme, bypass_csp=True)  # axe is put into the page
    page = context.new_page()
    page.goto(address(folder))
    page.locator(ROWS).first.locator("summary").click()
    found = Axe().run(page).response["violations"]
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    assert [(one["id"], [node["target"] for node in one["nodes"]][:5]) for one in serious] == []
    context.close()


@pytest.mark.parametrize("width", [320, 390, 600, 800, 1000, 1400])
def test_at_any_width_the_lead_is_first_the_plot_wide_and_no_text_over_another(browser, folder, width) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(address(folder))
    seen = (page.locator(f"{one} >> visible=true").first for one in (".lead", ".forest", ".strip", ".ratios"))
    lead, picture, plot, panel = (one.bounding_box() for one in seen)
    assert lead["y"] + lead["height"] < min(picture["y"], 900)
    assert plot["width"] >= 0.4 * panel["width"]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    over = page.locator(".forest >> visible=true").evaluate(
        """forest => [...forest.querySelectorAll('tbody tr, .sides')].flatMap(row => {
          const parts = [...row.querySelectorAll('th, summary, .strip, .sides span')].map(part => {
            const range = document.createRange();
            range.selectNodeContents(part);
            return [part, (part.matches('.strip') ? part : range).getBoundingClientRect()];
          });
          return parts.flatMap(([one, a], at) => parts.slice(at + 1).filter(([other, b]) => !one.contains(other)
            && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1
          ).map(([other]) => [one.textContent, other.textContent]));
        })"""
    )
    assert over == []
    page.close()


class TestPaper:
    def test_the_first_page_is_the_picture_and_what_is_folded_on_a_screen_is_there(self, folder: Path) -> None:
        first, *others = printed(folder)
        assert all(number in first for number, _ in from_frame(folder, explored.TORCH.subject))
        assert "MindSpore is slower in 2 of 3 ratios" in " ".join(first.split())
        assert "The questions" not in first
        assert "throughput ratio" in "".join(others)
        assert "benchlib trace tables" not in first, "what is behind a ratio stays folded"

    def test_no_text_is_smaller_than_seven_points(self, folder: Path) -> None:
        pdf.print_pdf(folder / "report.html", folder / "small.pdf", "a4", DATE)
        sizes = set()
        with pypdfium2.PdfDocument(folder / "small.pdf") as document:
            for page in document:
                text = page.get_textpage()
                for at in range(text.count_chars()):
                    if not pypdfium2.raw.FPDFText_IsGenerated(text, at) and text.get_text_range(at, 1).strip():
                        matrix = pypdfium2.raw.FS_MATRIX()
                        pypdfium2.raw.FPDFText_GetMatrix(text, at, matrix)
                        sizes.add(abs(matrix.d) * pypdfium2.raw.FPDFText_GetFontSize(text, at))
        assert len(sizes) > 3
        assert min(sizes) >= 7

    def test_a_view_is_printed_as_it_is_seen(self, page: Page, tmp_path: Path, folder: Path) -> None:
        choose(page, explored.MINDSPORE.subject)
        page.pdf(path=tmp_path / "view.pdf")
        with pypdfium2.PdfDocument(tmp_path / "view.pdf") as document:
            first = document[0].get_textpage().get_text_bounded()
        assert all(number in first for number, _ in from_frame(folder, explored.MINDSPORE.subject))

    def test_sixty_ratios_are_on_the_first_page_and_nothing_is_cut(self, browser: Browser, tmp_path: Path) -> None:
        explored.results(tmp_path, explored.five_frameworks(), "frameworks")
        explored.report(tmp_path)
        first, shown = printed(tmp_path)[0], from_frame(tmp_path, explored.TORCH.subject, "frameworks")
        assert len(shown) == 66
        assert all(text in first for text, _ in shown)
        assert len(re.findall(r"TensorFlow graph tuned", first)) == 16, "an environment's name is not said twice"
        assert "MXNet is" in first, "the sentences are there, too"
        page = browser.new_page(viewport={"width": 688, "height": 1000})  # as wide as the paper is
        page.emulate_media(media="print")
        page.goto(address(tmp_path))
        page.evaluate("() => document.querySelectorAll('.unseen').forEach(one => one.remove())")
        wider = page.locator(ROWS).evaluate_all(
            """rows => rows.flatMap(row => [...row.querySelectorAll('th, summary')].filter(cell => {
              const range = document.createRange();
              range.selectNodeContents(cell);
              return range.getBoundingClientRect().right > cell.getBoundingClientRect().right + 3;
            }).map(cell => cell.textContent))"""
        )
        assert wider == []
        page.close()

    def test_the_main_part_of_twelve_notebooks_is_twelve_pages_and_none_is_a_third_empty(self, tmp_path: Path) -> None:
        names = ("batch_size", "devices", "equivalence", "frameworks", "inference", "instrument", "learning_rate")
        for number, name in enumerate((*names, "modes", "operators", "scaling", "versions")):
            compared = [explored.COMPARED[number % 3]]
            explored.results(tmp_path, compared, name, height=1.5 + 0.5 * (number % 4))
        explored.claims(tmp_path, {f"C{number}": ("reproduced", False, "4 cases") for number in range(1, 19)})
        explored.report(tmp_path)
        texts = printed(tmp_path)
        begins = [next(at for at, text in enumerate(texts) if head in text.splitlines()) for head in PARTS]
        assert begins[-1] <= 12
        assert {f"C{number}" for number in range(1, 19)} <= set(re.findall(r"C\d+", texts[0]))
        with pypdfium2.PdfDocument(tmp_path / "report.pdf") as document:
            shares = [_filled(page) for page in document]
        last = {at - 1 for at in (*begins, len(texts))}
        assert [at for at, share in enumerate(shares) if share < 2 / 3 and at not in last] == []


PARTS = ("The questions", "How sure it is", "Appendix")
"""What the parts of the report begin with, after its first page."""


def printed(folder: Path) -> list[str]:
    """The text of each page of the report's PDF."""
    pdf.print_pdf(folder / "report.html", folder / "report.pdf", "a4", DATE)
    with pypdfium2.PdfDocument(folder / "report.pdf") as document:
        return [page.get_textpage().get_text_bounded() for page in document]


def _filled(page: pypdfium2.PdfPage) -> float:
    """How much of a page's text area is filled, from its top to the last line or picture."""
    drawn = np.asarray(page.render(scale=1).to_pil().convert("L"))
    top, bottom = (round(mm / 297 * len(drawn)) for mm in (16, 297 - 18))
    inked = np.flatnonzero((drawn[top:bottom] < 200).any(axis=1))
    return (inked.max() + 1) / (bottom - top)
