"""Runs in a framework's interpreter, as ``python -c TEXT NAME...``: are there top-level modules of these names, which
distributions do they come in and need? Prints JSON; imports none of them. Standard library only, of Python 3.8 and
later; Python 3.7 needs the package importlib-metadata.
"""

import hashlib
import importlib
import importlib.util
import json
import os
import platform
import re
import sys
import urllib.parse

try:
    metadata = importlib.import_module("importlib.metadata")
except ImportError:
    metadata = importlib.import_module("importlib_metadata")

_REQUIREMENT = re.compile(r"\s*([\w.-]+)\s*(?:\[([^\]]*)\])?")
_BESIDE = re.compile(r"\.\.|/|[^/]*\.dist-info/")
_EXTRA = re.compile(r"\bextra\s*==\s*['\"]([^'\"]+)['\"]")
FOR_DEVELOPERS = {"test", "tests", "testing", "dev", "doc", "docs", "lint"}  # extras that nothing computes with


def providers(name, place, listed):
    """The distributions that have installed a top-level module at ``place``, or are called as it is."""
    start = re.compile(rf"^{re.escape(name)}[/.]", re.MULTILINE)
    named = [one for one, names, record in listed if name in names or start.search(record)] + _distribution(name)
    return list({one.metadata["Name"]: one for one in named if has_installed(one, place)}.values())


def has_installed(one, place):
    """Does ``place`` lie where a distribution has its files? Another module of that name may stand before its own."""
    folders = [os.path.realpath(folder) for folder in [one.locate_file(""), *source(one)]]
    return os.path.realpath(place).startswith(tuple(os.path.join(folder, "") for folder in folders))


def source(one):
    """The folder that a distribution was installed from to be edited there; none of another."""
    origin = json.loads(one.read_text("direct_url.json") or "{}")
    is_edited = origin.get("dir_info", {}).get("editable")
    return [urllib.parse.unquote(urllib.parse.urlparse(origin["url"]).path)] if is_edited else []


def needed_versions(roots):
    """Versions of distributions and of all that they need and is installed. An extra counts where it is asked for, and
    of ``roots`` always, but for those that only their developers need.
    """
    versions, asked = {}, {}
    waiting = [(one, None) for one in roots]
    while waiting:
        one, extras = waiting.pop()
        versions[one.metadata["Name"]] = one.version
        for requirement in one.requires or ():
            text, _, marker = requirement.partition(";")
            only_for = {_normalise(extra) for extra in _EXTRA.findall(marker)}
            if only_for and not (only_for - FOR_DEVELOPERS if extras is None else only_for & extras):
                continue
            name, in_brackets = _REQUIREMENT.match(text).groups()
            wanted = {_normalise(extra.strip()) for extra in (in_brackets or "").split(",")}
            known = asked.setdefault(_normalise(name), set())
            if not wanted <= known:
                known |= wanted
                waiting += [(other, known) for other in _distribution(name)]
    return versions


def module(name, listed):
    """The place of a module (empty: none), its distributions and their needs, and a hash where no package has it."""
    spec = importlib.util.find_spec(name)
    place = (spec.origin or next(iter(spec.submodule_search_locations or ()), "")) if spec else ""
    roots = providers(name, place, listed) if spec else []
    place = place if spec and (spec.origin or roots) else ""
    builds = {f"files of {one.metadata['Name']}": build(one, place) for one in roots}
    return {
        "place": place,
        "distributions": [one.metadata["Name"] for one in roots],
        "packages": {**needed_versions(roots), **{name: files for name, files in builds.items() if files}},
        "digest": "" if roots else digest(place),
    }


def build(one, place):
    """A hash of the files that a distribution lists, but metadata and programs; without a list, of ``version.py``."""
    lines = [] if source(one) else (one.read_text("RECORD") or "").splitlines()
    own = sorted(line for line in lines if ",sha256=" in line and not _BESIDE.match(line))
    if own:
        return hashlib.sha256("\n".join(own).encode()).hexdigest()[:16]
    return digest(os.path.join(os.path.dirname(place), "version.py"))


def digest(place):
    """A hash of a file; empty where there is none, as of built-in modules."""
    try:
        with open(place, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()[:16]
    except OSError:
        return ""


def _distribution(name):
    try:
        return [metadata.distribution(name)]
    except metadata.PackageNotFoundError:
        return []  # it is for another system, or an extra that is not installed


def _normalise(name):
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    known = [
        (one, (one.read_text("top_level.txt") or "").split(), one.read_text("RECORD") or "")
        for one in metadata.distributions()
    ]
    modules = {name: module(name, known) for name in sys.argv[1:]}
    print("\n" + json.dumps({"python": platform.python_version(), "parent": os.getppid(), "modules": modules}))
