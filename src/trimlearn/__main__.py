"""``python -m trimlearn`` is the command ``trimlearn``."""

import sys

from trimlearn.cli import main

if __name__ == "__main__":
    sys.exit(main())
