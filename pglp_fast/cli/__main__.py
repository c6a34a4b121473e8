"""``python -m pglp_fast.cli``."""

import sys

from . import main

sys.exit(main())
