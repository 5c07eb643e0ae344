"""The ground floor: all that a worker needs beside ``frameworks`` and ``workloads``. It imports numpy and the standard
library only, so that any framework's environment will do; nothing of it imports a floor above.
"""

import os

from benchlib import frameworks, workloads

PLUGINS = "BENCHLIB_PLUGIN_LINKS"
"""A folder of links to plug-ins, which the parent names to a worker."""

if os.environ.get(PLUGINS):
    for package in (frameworks, workloads):
        package.__path__.insert(0, os.path.join(os.environ[PLUGINS], package.__name__.rpartition(".")[2]))
