"""Releasing a table of a million rows by the command line, from file to file."""

import contextlib
import io
import tempfile
from pathlib import Path

from pglp_fast.cli import main

HOW = [
    "--epsilon",
    "1",
    "--policy",
    "blocks:3",
    "--bounds",
    "35.68,35.83,139.60,139.78",
    "--cell-km",
    "0.34",
    "--force",
]


def quiet(*arguments):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert main([str(a) for a in arguments]) == 0


class Tables:
    params = ["csv", "parquet"]
    param_names = ["kind"]
    timeout = 600

    def setup(self, kind):
        self.folder = tempfile.TemporaryDirectory()
        at = Path(self.folder.name)
        self.table, self.out = at / f"t.{kind}", at / f"o.{kind}"
        quiet("simulate", "-o", self.table, "--users", 10_000, "--steps", 100)
        self.time_release(kind)

    def teardown(self, kind):
        self.folder.cleanup()

    def time_release(self, kind):
        quiet("release", self.table, "-o", self.out, *HOW)

    def peakmem_release(self, kind):
        quiet("release", self.table, "-o", self.out, *HOW)
