"""The command line, the demo and the docs, as a newcomer meets them."""

import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import numba
import numpy as np
import pytest

import pglp_fast as pf
from cli_tools import real_process
from pglp_fast import cli, synthetic

matplotlib.use("Agg")
ROOT = Path(__file__).parent.parent

compiled = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="large input")


def png_size(path):
    header = path.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(header[16:20], "big"), int.from_bytes(header[20:24], "big")


@compiled
def test_demo_prints_a_table_and_draws_a_picture(tmp_path, capsys):
    assert cli.main(["demo", "--out", str(tmp_path), "--people", "20000"]) == 0
    out = capsys.readouterr().out
    rows = re.findall(r"^(G_\w+)\s+(P-P?I?LM|P-PIM)((?:\s+\d\.\d{3}){4})\s+yes$", out, re.M)
    assert len(rows) == 8
    errors = {(policy, mechanism): [float(v) for v in values.split()] for policy, mechanism, values in rows}
    for policy in ("G_k9", "G_k16", "G_k25"):
        assert errors[policy, "P-PIM"] == sorted(errors[policy, "P-PIM"], reverse=True)  # less noise at larger epsilon
        assert errors[policy, "P-PIM"][-1] < errors[policy, "P-LM"][-1]
    assert png_size(tmp_path / "demo.png")[0] > 1000


def test_errors_are_one_line_and_exit_with_2(capsys):
    assert cli.main(["release", "nowhere.csv", "-o", "out.csv", "--epsilon", "1", "--policy", "blocks:3", "--cell-km", "1"]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", "pglp-fast: nowhere.csv is not there\n")
    assert cli.main(["demo", "--seed", "-1"]) == 2
    assert "argument --seed: must be at least 0, got -1" in capsys.readouterr().err


def test_help_and_errors_of_usage_import_no_numba():
    """Would catch an import of the engine at the top of any module that the parser needs."""
    code = "import sys; from pglp_fast.cli import main; print(main(sys.argv[1:])); "
    code += "print('numba' in sys.modules, 'numpy' in sys.modules)"
    for arguments in (["--help"], ["release", "--help"], ["plot", "--help"], ["nothing"], ["release", "t.csv"]):
        run = subprocess.run(
            [sys.executable, "-c", code, *arguments], env=real_process()[1], capture_output=True, text=True, check=True
        )
        assert run.stdout.endswith("False False\n"), arguments


def test_certify_is_the_function_whoever_imports_the_module_first():
    """The package has a module and a function of that name; would catch the module hiding the function."""
    code = "import pglp_fast.certify, pglp_fast as pf; from pglp_fast import certify; "
    code += "print(callable(pf.certify), certify is pf.certify)"
    run = subprocess.run([sys.executable, "-c", code], env=real_process()[1], capture_output=True, text=True, check=True)
    assert run.stdout == "True True\n"


def test_help_and_version_come_without_compiling():
    run, env = real_process()
    help_text = subprocess.run([*run, "--help"], env=env, capture_output=True, text=True, check=True).stdout
    assert "demo" in help_text
    assert "warmup" in help_text
    version = subprocess.run([*run, "--version"], env=env, capture_output=True, text=True, check=True).stdout
    assert version == f"pglp-fast {pf.__version__}\n"


@compiled
def test_warmup_compiles(capsys):
    assert cli.main(["warmup"]) == 0
    assert "compiled and cached" in capsys.readouterr().out


def test_the_city_is_the_same_every_time():
    a, b = synthetic.synthetic_city(), synthetic.synthetic_city()
    assert (a.density == b.density).all()
    assert a.density.sum() == pytest.approx(1)
    assert a.density.min() == 0  # the river
    assert set(np.unique(a.categories)) == {-1, 0, 1, 2, 3, 4}
    assert (a.density[a.people(1000)] > 0).all()


def test_the_readme_speaks_of_what_is_there():
    """Its two commands, its links, and its Python, which runs."""
    text = (ROOT / "README.md").read_text()
    assert re.search(r'^pip install "\.\[cli\]" && pglp-fast demo$', text, re.M)
    assert re.search(r'^pip install -e "\.\[test\]" && pytest$', text, re.M)
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / link).exists(), link


def test_everything_in_all_is_there():
    """Also what is imported only when asked for."""
    assert set(pf.__all__) <= set(dir(pf))
    for name in pf.__all__:
        assert getattr(pf, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = pf.nothing


def test_compiling_is_said_where_somebody_looks(monkeypatch, capsys, tmp_path):
    """Once, on a terminal, where a kernel is not in the cache; a minute of silence looks like a hang."""
    from pglp_fast.cli import say

    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    say.warn_of_compiling("no.such_kernel")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(say.sys.stderr, "isatty", lambda: True)
    say.warn_of_compiling("no.such_kernel")
    assert "compiling, once on this machine" in capsys.readouterr().err
    (tmp_path / "no.such_kernel-3.py311.nbi").touch()
    say.warn_of_compiling("no.such_kernel")
    assert capsys.readouterr().err == ""
