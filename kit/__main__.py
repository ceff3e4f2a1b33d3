"""``python -m kit``."""

import sys

if not sys.flags.safe_path:
    # What lies in the current folder is the user's.
    del sys.path[0]

from kit.cli import main

if __name__ == "__main__":
    main()
