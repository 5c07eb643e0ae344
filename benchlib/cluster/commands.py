"""The commands for many machines, as ``benchlib.cli`` has them: their docstrings are their help."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchlib.errors import BenchlibError, write_error


def merge(given: argparse.Namespace) -> int:
    """Unite folders of results of several machines.

    The same rows are there once. Where two folders have other numbers under one key, nothing is written, and they are
    named. Nothing is pooled: each host's rows stay its own.

    examples:
      benchlib merge outputs/quick /mnt/gpu/outputs/quick --outputs outputs/both
      benchlib merge outputs/quick visit/gpu.jsonl --outputs outputs/both
    """
    from benchlib.cluster.merge import merge as unite

    if given.outputs is None:
        raise BenchlibError("merge: name the new folder with --outputs")
    print(unite(given.folders, given.outputs))
    return 0


def diff(given: argparse.Namespace) -> int:
    """Compare two folders of results, or two hosts, dates or versions: which ratios have changed.

    A side is a FOLDER, or a part of one: FOLDER@host=NAME, @date=2026-11-01..2026-11-28, @environment=NAME or
    @PACKAGE=VERSION. Each ratio is taken within its own host.

    examples:
      benchlib diff outputs/before outputs/after --fail-on slower
      benchlib diff outputs/both@host=n1 outputs/both@host=n2 --page hosts.html
    """
    from benchlib.cluster import diff as sides
    from benchlib.cluster import diff_page

    found = sides.compare(given.before, given.after)
    print(diff_page.text(found))
    if given.page:
        try:
            given.page.write_text(diff_page.page(found), encoding="utf-8")
        except OSError as error:
            raise BenchlibError(write_error(error, given.page)) from None
    if given.fail_on and not found.changes:
        raise BenchlibError(f"{given.before} and {given.after} have no ratio in common: nothing was compared")
    return int(found.fails(given.fail_on))


OPTIONS: dict[str, dict[str, Any]] = {
    "folders": {"type": Path, "nargs": "+", "metavar": "FOLDER", "help": "folders of results, or files of visits"},
    "before": {"metavar": "BEFORE", "help": "a folder of results, or a part of one"},
    "after": {"metavar": "AFTER", "help": "a folder of results, or a part of one"},
    "--page": {"type": Path, "metavar": "FILE", "help": "write a page (HTML), too"},
    "--fail-on": {"choices": ["changed", "slower"], "help": "the exit code is 1 if a ratio has, or something is, so"},
}
COMMANDS = {merge: "folders --outputs", diff: "before after --page --fail-on"}
