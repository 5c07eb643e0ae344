"""An executed notebook as one HTML file: contents, numbered figures and tables, no request to the network.

nbconvert renders it with the template in ``template/report``. A page with the picture of all ratios gets the script
that makes it explorable (``report.js``), and a policy by which a browser runs that script and no other.
"""

from __future__ import annotations

import base64
import hashlib
import mimetypes
import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import bs4
import nbformat
from nbconvert.exporters import HTMLExporter
from traitlets.config import Config

from benchlib.errors import BenchlibError

SHOWN = ["text/html", "text/markdown", "image/svg+xml", "image/png", "image/jpeg", "text/plain"]
"""What of an output is shown: the first of these that it has. Widgets and JavaScript need scripts from elsewhere."""

LOADING = ("src", "srcset", "href", "xlink:href", "data", "poster", "background")
"""Attributes that name something to load. Links to click on (``a``) load nothing by themselves."""

TEMPLATE = Path(__file__).parent / "template"


def export_html(notebook: Path, html: Path, code: bool = False) -> None:
    """Write the executed ``notebook`` as a page, whole or not at all: with its ``code``, or results and prose alone.

    Images that are files, named relative to the notebook, are put into the page. Raises BenchlibError if one is missing
    or something would be loaded from elsewhere. The same results give the same bytes.
    """
    content = nbformat.read(notebook, as_version=4)
    for cell in content.cells:
        if cell.cell_type == "code":  # values glued with scrapbook are for programs
            cell.outputs = [one for one in cell.outputs if not one.get("metadata", {}).get("scrapbook", {}).get("data")]
    exporter = HTMLExporter(
        template_name="report",
        extra_template_basedirs=[str(TEMPLATE)],
        exclude_input=not code,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        config=Config({"NbConvertBase": {"display_data_priority": SHOWN}}),
    )
    rendered, _ = exporter.from_notebook_node(content, {"metadata": {"name": notebook.stem}})
    page = bs4.BeautifulSoup(rendered, "html.parser")
    for image in page.find_all("img"):
        if not re.match(r"[a-z]+:|//", image.get("src", "")):
            _embed(image, notebook)
    if outside := "; ".join(_outside(page)):
        raise BenchlibError(
            f"{notebook}: the page would load something from elsewhere: {outside}; show images as files"
        )
    for cell in page.find_all(id=re.compile("^cell-id=")):  # drawn at random in each execution
        del cell["id"]
    _number(page)
    _add_contents(page)
    partial = html.with_name(f".partial-{html.name}")
    try:
        partial.write_text(_explorable(page) if page.find(class_="forest") else str(page), encoding="utf-8")
        os.replace(partial, html)
    finally:
        partial.unlink(missing_ok=True)


def _embed(image: bs4.Tag, notebook: Path) -> None:
    file = notebook.parent / unquote(image.get("src", ""))
    if not file.is_file():
        raise BenchlibError(f"{notebook}: the image {image.get('src', '')!r} is not there: {file} is no file")
    kind = mimetypes.guess_type(file.name)[0]
    image["src"] = f"data:{kind};base64,{base64.b64encode(file.read_bytes()).decode()}"


def _outside(page: bs4.BeautifulSoup) -> Iterator[str]:
    """All that a browser would load or run: each as the beginning of its element."""
    for element in page.find_all(True):
        names = LOADING if element.name not in ("a", "area") else ()
        is_data = element.name == "script" and element.get("type") == "application/json"  # which nothing runs
        loads = any(not str(element.get(name, "#")).startswith(("#", "data:")) for name in names)
        styles = str(element.get("style", "")) + (element.get_text() if element.name == "style" else "")
        imports = re.search(r"@import|url\(\s*['\"]?(?!data:|#)[^)'\"\s]", styles)
        if loads or imports or (element.name in ("script", "iframe") and not is_data):
            yield str(element)[:120]


def _explorable(page: bs4.BeautifulSoup) -> str:
    """The page with its script, which its policy names by its hash."""
    script = (TEMPLATE / "report" / "report.js").read_text(encoding="utf-8")
    policy = page.find("meta", attrs={"http-equiv": "Content-Security-Policy"})
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy["content"] += f"; script-src 'sha256-{digest}'"
    before, end, after = str(page).rpartition("</body>")
    return f"{before}<script>{script}</script>{end}{after}"


def _number(page: bs4.BeautifulSoup) -> None:
    """Number the captions of figures and of tables, each kind by itself, in the order of the page."""
    for name, kind in [("figcaption", "Figure"), ("caption", "Table")]:
        captions = [one for one in page.main.find_all(name) if not one.find_parent(class_="forest")]
        for number, caption in enumerate(captions, start=1):
            label = page.new_tag("strong", string=f"{kind} {number}.")
            caption.insert(0, label)
            label.insert_after(" ")


def _add_contents(page: bs4.BeautifulSoup) -> None:
    """Title of the page from its first heading; below that, links to all headings of the second and third level."""
    headings = [
        one for one in page.main.select("h1, h2, h3") if one.name == "h2" or not one.find_parent(class_="board")
    ]
    if not headings:
        return
    page.title.string = headings[0].get_text().removesuffix("¶").strip()
    contents = page.new_tag("nav", attrs={"class": "contents", "aria-label": "Contents"})
    seen: set[str] = set()
    for heading in headings[1:]:
        text = heading.get_text().removesuffix("¶").strip()
        name = re.sub(r"\W+", "-", text).strip("-").lower() or "section"
        while name in seen:
            name += "-"
        seen.add(name)
        heading["id"] = name
        if anchor := heading.find("a", class_="anchor-link"):
            anchor["href"] = f"#{name}"
        contents.append(page.new_tag("a", href=f"#{name}", attrs={"class": heading.name}, string=text))
    first = page.main.find(class_="first-page")
    (first or headings[0]).insert_after(contents)  # the first page is a picture: nothing before it
