"""Import time, and the first release of a fresh process with a warm on-disk cache."""

import subprocess
import sys


def _python(code):
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


class Startup:
    timeout = 300

    def setup(self):
        self.time_first_release()

    def time_import_numba(self):
        _python("import numba")

    def time_import_pglp_fast(self):
        _python("import pglp_fast")

    def time_first_release(self):
        _python(
            "import pglp_fast as pf; pf.PPIM(pf.blocks(pf.Grid(9, 9), 3), "
            "epsilon=1.0).release([0, 1])"
        )
