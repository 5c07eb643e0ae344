"""An executed notebook as one HTML file: contents, numbered figures and tables, no request to the network."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import bs4
import nbformat
from nbconvert.exporters import HTMLExporter
from traitlets.config import Config

from benchlib.errors import BenchlibError
from benchlib.scratch import replace_file

SHOWN = ["text/html", "text/markdown", "image/svg+xml", "image/png", "image/jpeg", "text/plain"]  # the first of these
LOADING = (  # the parts of a page that would load something from elsewhere, or run
    "script, iframe, object, embed, link:not([href^='data:']), [src]:not([src^='data:']), [srcset], [poster], "
    "[style*='url('], style:-soup-contains('@import'), style:-soup-contains('http')"
)
TEMPLATE = Path(__file__).parent / "template"


def export_html(notebook: Path, html: Path, code: bool = False) -> None:
    """Write the executed ``notebook`` as a page, whole or not at all: with its ``code``, or results and prose alone.

    A BenchlibError where something would be loaded from elsewhere. The same results give the same bytes.
    """
    content = nbformat.read(notebook, as_version=4)
    for cell in content.cells:
        if cell.cell_type == "code":  # values glued with scrapbook are for programs
            cell.outputs = [one for one in cell.outputs if not one.get("metadata", {}).get("scrapbook", {}).get("data")]
    exporter = HTMLExporter(
        template_name="report",
        extra_template_basedirs=[str(TEMPLATE)],
        embed_images=True,
        exclude_anchor_links=True,
        exclude_input=not code,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        config=Config({"NbConvertBase": {"display_data_priority": SHOWN}}),
    )
    where = {"metadata": {"name": notebook.stem, "path": str(notebook.parent)}}
    page = bs4.BeautifulSoup(exporter.from_notebook_node(content, where)[0], "html.parser")
    if outside := page.select(LOADING):
        addresses = "; ".join(str(one)[:120] for one in outside)
        raise BenchlibError(f"{notebook}: the page would load {addresses}; is that file there, beside the notebook?")
    for cell in page.find_all(id=re.compile("^cell-id=")):  # drawn at random in each execution
        del cell["id"]
    for name, kind in [("figcaption", "Figure"), ("caption", "Table")]:
        captions = [one for one in page.main.find_all(name) if not one.find_parent(class_="forest")]
        for number, caption in enumerate(captions, start=1):
            caption.insert(0, page.new_tag("strong", string=f"{kind} {number}."), " ")
    _add_contents(page)
    with replace_file(html) as partial:
        partial.write_text(_with_script(page) if page.find(class_="forest") else str(page), encoding="utf-8")


def _with_script(page: bs4.BeautifulSoup) -> str:
    """Return the page with its script, which its policy names by its hash."""
    script = (TEMPLATE / "report" / "report.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page.find("meta", attrs={"http-equiv": "Content-Security-Policy"})["content"] += f"; script-src 'sha256-{digest}'"
    before, end, after = str(page).rpartition("</body>")
    return f"{before}<script>{script}</script>{end}{after}"


def _add_contents(page: bs4.BeautifulSoup) -> None:
    """Give the page the title of its first heading, and links to the headings of the second and third level."""
    first, *headings = page.main.select("h1, h2, h3:not(.board h3)") or [None]
    if first is None:
        return
    page.title.string = first.get_text()
    contents = page.new_tag("nav", attrs={"class": "contents", "aria-label": "Contents"})
    seen: set[str] = set()
    for heading in headings:
        name = re.sub(r"\W+", "-", heading.get_text()).strip("-").lower() or "section"
        while name in seen:
            name += "-"
        seen.add(name)
        heading["id"] = name
        link = page.new_tag("a", href=f"#{name}", attrs={"class": heading.name}, string=heading.get_text())
        contents.append(link)
    (page.main.find(class_="first-page") or first).insert_after(contents)
