"""``python -m benchlib`` is the command ``benchlib``."""

import sys

from benchlib.cli import main

if __name__ == "__main__":
    sys.exit(main())
