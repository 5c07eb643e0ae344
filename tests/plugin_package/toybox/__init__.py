"""A plug-in of benchlib, whose names are found without running this."""

raise RuntimeError("the package of a plug-in was imported")
