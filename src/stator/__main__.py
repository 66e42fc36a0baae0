"""`python -m stator`: the command line."""

import sys

from stator.cli import main

sys.exit(main())
