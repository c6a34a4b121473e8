"""Scripts that complete: made from the parser, tried in the shell where there is one."""

import shutil
import subprocess

import pytest

from cli_tools import run
from pglp_fast.cli.completion import read_parser
from pglp_fast.cli.parser import make_parser


def script(capsys, shell):
    capsys.readouterr()
    run("completion", shell)
    return capsys.readouterr().out


def complete(text, *words):
    """What bash offers for the last of the words."""
    asked = (
        f"{text}\nCOMP_WORDS=(pglp-fast {' '.join(repr(w) for w in words)}); "
        f'COMP_CWORD={len(words)}; _pglp_fast; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", asked], capture_output=True, text=True, check=True
    )
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash here")
def test_bash_completes_commands_options_and_choices(capsys):
    text = script(capsys, "bash")
    assert complete(text, "re") == ["release", "report"]
    assert set(complete(text, "")) == {*read_parser(make_parser()), "--help", "--version"}
    assert complete(text, "fit", "--us") == ["--users"]
    assert complete(text, "release", "t.csv", "--calibration", "") == ["component", "graph"]
    assert complete(text, "plot", "no") == ["noise"]
    assert complete(text, "release", "-o", "") == []  # files: bash's own
    assert complete(text, "release", "tr") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_option_is_in_every_script(capsys, shell):
    """Would catch an option of one command that a script gives to another, or leaves out."""
    text = script(capsys, shell)
    for name, one in read_parser(make_parser()).items():
        if shell == "fish":
            part = "".join(
                line for line in text.splitlines() if f"seen_subcommand_from {name}'" in line
            )
        else:
            start = text.index(f"'{name} '-*)" if shell == "bash" else f"\n    {name})\n")
            part = text[start : text.index(";;", start)]
        for option in one.options:
            long = option.names[-1]
            assert (f"-l {long[2:]} " if shell == "fish" else long) in part, (name, long)
    if shutil.which(shell):
        check = {"bash": ["-n"], "zsh": ["-n"], "fish": ["--no-execute"]}[shell]
        subprocess.run([shell, *check], input=text, text=True, check=True)


def test_another_shell_is_refused(capsys):
    run("completion", "tcsh", code=2)
    assert "invalid choice: 'tcsh'" in capsys.readouterr().err
