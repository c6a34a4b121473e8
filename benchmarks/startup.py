"""Import time, the first release of a fresh process with compiled kernels on disk, and without."""

import os
import subprocess
import sys
import tempfile

FIRST_RELEASE = (
    "import pglp_fast as pf; m = pf.PPIM(pf.blocks(pf.Grid(9, 9), 3), epsilon=1.0); "
    "m.release([0, 1]); pf.certify(m)"
)


def fresh_process(code, cache=None):
    """Run code in a process of its own; ``cache``: a folder for its compiled kernels."""
    environment = dict(os.environ) if cache is None else os.environ | {"NUMBA_CACHE_DIR": cache}
    subprocess.run(
        [sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env=environment
    )


def cold_start():
    """The first release and its certificate on a machine where nothing is compiled yet."""
    with tempfile.TemporaryDirectory() as folder:
        fresh_process(FIRST_RELEASE, folder)


class Startup:
    timeout = 300

    def setup_cache(self):
        """Compiled once for all timings."""
        fresh_process(FIRST_RELEASE)

    def time_import_numba(self):
        fresh_process("import numba")

    def time_import_pglp_fast(self):
        fresh_process("import pglp_fast")

    def time_first_release(self):
        fresh_process(FIRST_RELEASE)


class Cold:
    """It compiles: one round of it is enough."""

    timeout, number, repeat, warmup_time = 600, 1, 1, 0

    def time_first_release(self):
        cold_start()
