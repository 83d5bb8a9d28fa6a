"""`python -m hoodie` is the `hoodie` command."""

import sys

from hoodie.cli.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
