"""Every run of the suite draws the same cases: a failure is a bug, never bad luck."""

import os
from pathlib import Path

import numba
import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
# some 50,000 examples of hostile input, the same at each run: a stage of .ci/run
settings.register_profile("ci", settings.get_profile("fixed"), max_examples=700)
# other cases at each run, and many more: HYPOTHESIS_PROFILE=thorough pytest tests/properties
settings.register_profile(
    "thorough",
    deadline=None,
    max_examples=700,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

HERE = Path(__file__).parent


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A test in a folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def restore_threads():
    import pglp_fast as pf

    before = pf.get_num_threads()
    yield
    pf.set_num_threads(before)


def runs_only(config, *folders):
    """Whether nothing but tests in these folders was asked for."""
    paths = [Path(config.invocation_params.dir, a.split("::")[0]).resolve() for a in config.args]
    return all(any(HERE / f in (path, *path.parents) for f in folders) for path in paths)


def pytest_xdist_auto_num_workers(config):
    """Nothing runs beside what is timed."""
    return 0 if runs_only(config, "perf") else None


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session):
    """Compile once, by two processes, before the workers start: these would wait for each other.
    Direct tests of kernels compile others, each its own."""
    config = session.config
    workers = getattr(config.option, "numprocesses", None)
    if not workers or hasattr(config, "workerinput") or numba.config.DISABLE_JIT:
        return
    if runs_only(config, "kernels"):
        return
    from pglp_fast._kernels.base.jit import FOLDERS
    from pglp_fast.cli.warmup import warm_up

    if not FOLDERS:
        return
    wanted = "\n".join(sorted(folder.name for folder in FOLDERS.values()))
    done = next(iter(FOLDERS.values())).parent / "complete"
    if not done.exists() or done.read_text() != wanted:
        warm_up()
        done.write_text(wanted)


def pytest_xdist_make_scheduler(config, log):
    """A worker takes a whole file, which shares its fixtures. It takes whole folders of kernels:
    what they have in common is then translated in one process only."""
    return _ByFile(config, log)


class _ByFile(LoadFileScheduling):
    def _split_scope(self, nodeid):
        file = super()._split_scope(nodeid)
        return file.rpartition("/")[0] if file.startswith("tests/kernels/") else file
