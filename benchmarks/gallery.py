"""Makes a gallery of a folder of results: the report, each executed notebook as a page, and the tables they link to.

    .venv/bin/python benchmarks/gallery.py outputs/then_and_now docs/gallery/then_and_now

Pages have the notebooks' code, and the figures within them as SVG, with coordinates to a hundredth of a point: links to
files of figures are left out, and so are cells that nobody reads. Nothing is executed; a page that would load something
from elsewhere is refused. What the gallery had before is gone.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import shutil
from pathlib import Path

import nbformat

from benchlib.report.export import export_html

REPORT = "report"
FIGURE = re.compile(r"data:image/svg\+xml;base64,([\w+/=]+)")


def shorten(figure: re.Match[str]) -> str:
    """The address of a figure that a page holds, in half the characters."""
    svg = base64.b64decode(figure[1]).decode()
    svg = re.sub(r'( [dxy]="|translate\()[^")]+', lambda place: re.sub(r"(\.\d\d)\d+", r"\1", place[0]), svg)
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|\s*\n\s*", " ", svg, flags=re.DOTALL)
    return "data:image/svg+xml," + svg.replace("%", "%25").replace("#", "%23").replace('"', "%22")


def _as_read(notebook: Path, folder: Path) -> Path:
    """A copy without the cells that nobody reads: parameters that others have replaced, and the end of the study."""
    read = nbformat.read(notebook, as_version=4)
    replaced = any("injected-parameters" in cell.metadata.get("tags", ()) for cell in read.cells)
    unread = {"parameters"} if replaced else set()
    read.cells = [
        cell
        for cell in read.cells
        if cell.source.strip() != "study.finish()" and not unread & {*cell.metadata.get("tags", ())}
    ]
    nbformat.write(read, folder / notebook.name)
    return folder / notebook.name


def main() -> None:
    """Write the gallery."""
    parser = argparse.ArgumentParser(description="A gallery of a folder of results.")
    parser.add_argument("source", type=Path, help="the results of a run")
    parser.add_argument("target", type=Path, help="the folder of the gallery")
    given = parser.parse_args()
    shutil.rmtree(given.target, ignore_errors=True)
    given.target.mkdir(parents=True)
    shutil.copy(given.source / "report.html", given.target)
    lines = []
    for notebook in sorted((given.source / "notebooks").glob("*.ipynb")):
        if notebook.stem != REPORT:
            export_html(_as_read(notebook, given.target), given.target / f"{notebook.stem}.html", code=True)
            (given.target / notebook.name).unlink()
            record = json.loads(notebook.with_suffix(".json").read_text(encoding="utf-8"))
            lines.append(f"- [{notebook.stem}]({notebook.stem}.html): {record['started_utc'][:10]}")
    linked = set()
    for page in sorted(given.target.glob("*.html")):
        project = f"{given.source.resolve().parents[1]}/"  # a warning may name a file of it
        text = re.sub(
            r'<a href="figures/[^"]+">\w+</a>(, )?', "", page.read_text(encoding="utf-8").replace(project, "")
        )
        text = re.sub(r'<p class="links">As </p>', "", re.sub(r", (?=</p>)", "", text))
        page.write_text(FIGURE.sub(shorten, text), encoding="utf-8")
        linked |= set(re.findall(r'href="([\w/.-]+\.csv)"', text))
    for name in sorted(linked):
        (given.target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(given.source / name, given.target / name)
    size = sum(path.stat().st_size for path in given.target.rglob("*") if path.is_file())
    print(*lines, f"{len(linked)} files beside the pages, {size / 2**20:.1f} MiB in all", sep="\n")


if __name__ == "__main__":
    main()
