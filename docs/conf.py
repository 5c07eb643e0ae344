"""The site, as ``make docs`` builds it: the Markdown of this folder, docstrings, the gallery's rendered notebooks."""

import os
import shutil
import sys
import tomllib
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))  # docstrings are read from the checkout

project, author = "benchlib", "benchlib developers"
release = version = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_external_toc"]
exclude_patterns = ["_build"]
nb_execution_mode = "off"
myst_heading_anchors = 3
external_toc_path = "_toc.yml"
autodoc_typehints, autodoc_member_order = "none", "bysource"
html_theme = "pydata_sphinx_theme"
html_title = "benchlib"
html_theme_options = {"navigation_with_keys": False, "show_toc_level": 2, "header_links_before_dropdown": 6}
html_show_sourcelink = False


def add_commands(app, docname, source):
    """Add the help of each command to their page."""
    if docname == "commands":
        from benchlib.cli import _parser

        os.environ["COLUMNS"] = "84"
        every = next(one.choices for one in _parser()._actions if isinstance(one.choices, dict))
        texts = (f"\n## benchlib {name}\n\n```text\n{of.format_help()}```\n" for name, of in every.items())
        source[0] += "".join(texts)


def open_pages(app, doctree):
    """Have links to the gallery's pages open them there, where Sphinx would copy each and offer it as a download."""
    for link in list(doctree.findall(addnodes.download_reference)):
        page = os.path.relpath(DOCS / Path(link["refdoc"]).parent / link["reftarget"], DOCS)
        if "gallery" in page and page.endswith(".html"):
            page = page[page.index("gallery") :]
            at = os.path.relpath(page, Path(link["refdoc"]).parent)
            link.replace_self(nodes.reference("", "", *link.children, refuri=at, internal=True))


def copy_pages(app, error):
    """Put the gallery's pages beside those of the site."""
    if not error:
        kept = shutil.ignore_patterns("*.md", "*.gz")
        shutil.copytree(DOCS / "gallery", Path(app.outdir, "gallery"), dirs_exist_ok=True, ignore=kept)


def setup(app):
    """What Sphinx calls."""
    app.connect("source-read", add_commands)
    app.connect("doctree-read", open_pages)
    app.connect("build-finished", copy_pages)
