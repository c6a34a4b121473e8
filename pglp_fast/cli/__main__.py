"""``python -m pglp_fast.cli``."""

import sys

from pglp_fast.cli import main

sys.exit(main())
