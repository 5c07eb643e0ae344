"""An executed notebook as one HTML file: contents, numbered figures and tables, no request to the network.

nbconvert renders it with the template in ``template/report``; what is done here is what a template cannot do. A page
with the picture of all ratios gets the script that makes it explorable (``report.js``), and a policy by which a browser
runs that script and no other; all other pages run none.
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
EXPLORER = TEMPLATE / "report" / "report.js"

SHORT_ROWS, SHORT_TEXT = 8, 1500
"""A table of at most so many rows and characters is not broken: moved to the next page, it leaves a small gap."""


def export_html(notebook: Path, html: Path, code: bool = False) -> None:
    """Write the executed ``notebook`` as a page to ``html``, which is there whole or not at all; with its ``code``, or
    with results and prose alone.

    Images that are files, named relative to the notebook, are put into the page. Raises BenchlibError if one is
    missing, or if the notebook shows something that would be loaded from elsewhere. The same results give the same
    bytes.
    """
    content = nbformat.read(notebook, as_version=4)
    for cell in content.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not _is_glued_data(output)]
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
    _embed_images(page, notebook)
    if outside := list(_outside(page)):
        raise BenchlibError(
            f"{notebook}: the page would load something from elsewhere, which it must not: {'; '.join(outside)}; "
            "show images as files or outputs, and no scripts"
        )
    _forget_cells(page)
    _mark_tables(page)
    _number(page)
    _split_tables(page)
    _add_contents(page)
    text = _explorable(page) if page.find(class_="forest") else str(page)
    partial = html.with_name(f".partial-{html.name}")
    try:
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, html)
    finally:
        partial.unlink(missing_ok=True)


def _is_glued_data(output: nbformat.NotebookNode) -> bool:
    """Values glued with scrapbook are for programs; figures glued with it are outputs like others."""
    return output.get("metadata", {}).get("scrapbook", {}).get("data", False)


def _embed_images(page: bs4.BeautifulSoup, notebook: Path) -> None:
    for image in page.find_all("img"):
        source = image.get("src", "")
        if re.match(r"[a-z]+:|//", source):
            continue
        file = notebook.parent / unquote(source)
        if not file.is_file():
            raise BenchlibError(f"{notebook}: the image {source!r} is not there: {file} is no file")
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
    script = EXPLORER.read_text(encoding="utf-8")
    policy = page.find("meta", attrs={"http-equiv": "Content-Security-Policy"})
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy["content"] += f"; script-src 'sha256-{digest}'"
    before, end, after = str(page).rpartition("</body>")
    return f"{before}<script>{script}</script>{end}{after}"


def _forget_cells(page: bs4.BeautifulSoup) -> None:
    """Take away the ids of cells: nothing leads to them, and papermill draws one at random in each execution."""
    for cell in page.find_all(id=re.compile("^cell-id=")):
        del cell["id"]


def _mark_tables(page: bs4.BeautifulSoup) -> None:
    """Give tables classes for paper: those of many columns get smaller type, short ones are not broken."""
    for table in page.find_all("table"):
        rows = table.find_all("tr")
        columns = max((len(row.find_all(["td", "th"])) for row in rows), default=0)
        marks = ["wide" if columns < VERY_WIDE else "very-wide"] if columns > 6 else []
        if len(rows) <= SHORT_ROWS and len(table.get_text()) <= SHORT_TEXT:
            marks.append("short")
        if marks:
            table["class"] = [*table.get("class", []), *marks]
        if "very-wide" in marks:
            _keep_ends(page, table)


def _keep_ends(page: bs4.BeautifulSoup, table: bs4.Tag) -> None:
    """Make the ends of intervals one word: where there is no room for all of a number, it breaks before them."""
    for text in table.tbody.find_all(string=ENDS) if table.tbody else ():
        before, ends, after = text.partition(ENDS.search(text)[0])
        kept = page.new_tag("span", attrs={"class": "ends"})
        kept.string = ends
        text.replace_with(before, kept, after)


ENDS = re.compile(r"\[[^\[\]]+, [^\[\]]+\]")
"""Of an interval, as ``tables`` writes them."""

VERY_WIDE = 10
"""Columns of a table whose numbers wrap on paper."""

PAGE_CHARACTERS, BETWEEN = 128, 1.5
"""Of the smallest type, so many stand beside each other on paper; a gap between columns is as wide as so many."""


def _split_tables(page: bs4.BeautifulSoup) -> None:
    """Beside each table that is too wide for paper, the same in parts that fit, each with the columns that tell rows
    apart: the one is for screens, the others for paper.
    """
    for table in page.main.find_all("table"):
        rows = [row.find_all(["th", "td"], recursive=False) for row in table.find_all("tr")]
        if table.find_parent(class_="forest") or not rows or len({len(row) for row in rows}) > 1:
            continue
        very_wide = len(rows[0]) >= VERY_WIDE
        widths = [max(_least_width(cell, very_wide) for cell in column) for column in zip(*rows, strict=True)]
        parts = _parts(widths, _keys([[cell.get_text() for cell in row] for row in rows], widths))
        if len(parts) == 1:
            continue
        for number, part in reversed(list(enumerate(parts, start=1))):
            copy = bs4.BeautifulSoup(str(table), "html.parser").table
            for row in copy.find_all("tr"):
                for place, cell in enumerate(row.find_all(["th", "td"], recursive=False)):
                    if place not in part:
                        cell.decompose()
            if number > 1 and copy.caption:
                label = copy.caption.strong.get_text().rstrip(".")
                copy.caption.string = f"{label}, continued."
            copy["class"] = [*copy.get("class", []), "on-paper"]
            copy["aria-hidden"] = "true"
            table.insert_after(copy)
        table["class"] = [*table.get("class", []), "on-screen"]


def _least_width(cell: bs4.Tag, very_wide: bool) -> float:
    """In characters: what a cell is wide that wraps where it may; numbers may not, but for those of a very wide table,
    before the ends of their interval.
    """
    text = cell.get_text(" ")
    kept = cell.name == "td" and "nowrap" in str(cell.get("style", ""))
    if kept and very_wide and (ends := ENDS.search(text)):
        return max(map(len, (text[: ends.start()].strip(), text[ends.start() :])))
    return len(text) if kept else max(map(len, re.split(r"[\s/_-]+", text)), default=0)


MOST_KEYS = 3


def _keys(rows: list[list[str]], widths: list[float]) -> int:
    """How many of the first columns it takes to tell rows apart; one, where it takes more than ``MOST_KEYS``, or more
    than half of the page.
    """
    for count in range(1, min(MOST_KEYS, len(widths) - 1) + 1):
        if len({tuple(row[:count]) for row in rows}) == len(rows):
            return count if sum(widths[:count]) + count * BETWEEN < PAGE_CHARACTERS / 2 else 1
    return 1


def _parts(widths: list[float], keys: int = 1) -> list[list[int]]:
    """The places of columns of these widths that stand beside each other on paper, in as few parts as it takes, of
    about the same width; so many ``keys``, the first ones, are in each part.
    """
    room = PAGE_CHARACTERS - sum(widths[:keys]) - (keys - 1) * BETWEEN
    fewest = len(_packed(widths, keys, room))
    while room > max(widths) and len(_packed(widths, keys, room - 1)) == fewest > 1:
        room -= 1
    return _packed(widths, keys, room)


def _packed(widths: list[float], keys: int, room: float) -> list[list[int]]:
    """As many columns in each part as have ``room`` beside the keys."""
    repeated = list(range(keys))
    parts, left = [[*repeated]], room
    for place, width in enumerate(widths[keys:], start=keys):
        if left < width + BETWEEN and len(parts[-1]) > keys:
            parts.append([*repeated])
            left = room
        parts[-1].append(place)
        left -= width + BETWEEN
    return parts


def _number(page: bs4.BeautifulSoup) -> None:
    """Number the captions of figures and of tables, each kind by itself, in the order of the page."""
    for name, kind in [("figcaption", "Figure"), ("caption", "Table")]:
        captions = [one for one in page.main.find_all(name) if not one.find_parent(class_="forest")]
        for number, caption in enumerate(captions, start=1):
            label = page.new_tag("strong")
            label.string = f"{kind} {number}."
            caption.insert(0, label)
            label.insert_after(" ")


def _add_contents(page: bs4.BeautifulSoup) -> None:
    """Title of the page from its first heading; below that, links to all headings of the second and third level."""
    headings = [
        one for one in page.main.find_all(["h1", "h2", "h3"]) if not one.find_parent(class_="board") or one.name == "h2"
    ]
    if not headings:
        return
    page.title.string = _text(headings[0])
    contents = page.new_tag("nav", attrs={"class": "contents", "aria-label": "Contents"})
    seen: set[str] = set()
    for heading in headings[1:]:
        name = re.sub(r"\W+", "-", _text(heading)).strip("-").lower() or "section"
        while name in seen:
            name += "-"
        seen.add(name)
        heading["id"] = name
        if anchor := heading.find("a", class_="anchor-link"):
            anchor["href"] = f"#{name}"
        link = page.new_tag("a", href=f"#{name}", attrs={"class": heading.name})
        link.string = _text(heading)
        contents.append(link)
    first = page.main.find(class_="first-page")
    (first or headings[0]).insert_after(contents)  # the first page is a picture: nothing before it


def _text(heading: bs4.Tag) -> str:
    return heading.get_text().removesuffix("¶").strip()
