"""`python -m headwater` is the `headwater` command."""

import sys

from headwater.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
