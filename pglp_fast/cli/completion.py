"""``pglp-fast completion``: a script that completes commands, options and their values."""

import argparse
import shlex
from typing import NamedTuple

from .options import Commands, command

_TEXT = """
Print a script that makes the shell complete commands, options, their choices and files. It is made
from the options that this version has: make it again after an update.

where the script goes:
  bash  ~/.local/share/bash-completion/completions/pglp-fast
  zsh   _pglp-fast in a folder of $fpath, before compinit runs
  fish  ~/.config/fish/completions/pglp-fast.fish
"""
_EXAMPLES = """
pglp-fast completion bash
pglp-fast completion zsh
pglp-fast completion fish
"""


class Option(NamedTuple):
    """One option: how it is spelt, whether it takes a value, which ones, and what it is."""

    names: list[str]
    valued: bool
    choices: list[str]
    text: str


class Command(NamedTuple):
    """A subcommand: what it is, its options, and the words that may stand without one."""

    text: str
    options: list[Option]
    words: list[str]


def add(commands: Commands) -> None:
    parser = command(
        commands, "completion", "print a completion script for your shell", _TEXT, _EXAMPLES
    )
    parser.add_argument(
        "shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish"
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from .parser import make_parser  # which imports this module

    made = {"bash": _bash, "zsh": _zsh, "fish": _fish}[options.shell]
    print(made(read_parser(make_parser())), end="")


def read_parser(parser: argparse.ArgumentParser) -> dict[str, Command]:
    """What the parser knows of each subcommand."""
    commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    texts = {one.dest: one.help or "" for one in commands._choices_actions}
    return {name: _command(one, texts[name]) for name, one in commands.choices.items()}


def _command(parser: argparse.ArgumentParser, text: str) -> Command:
    options, words = [], []
    for action in parser._actions:
        choices = [str(choice) for choice in action.choices or ()]
        if action.option_strings:
            said = " ".join((action.help or "").replace("%%", "%").split())
            options.append(Option(list(action.option_strings), action.nargs != 0, choices, said))
        else:
            words += choices
    return Command(text, options, words)


_BASH = """\
# pglp-fast, for bash; made by: pglp-fast completion bash
_pglp_fast() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} found=
  COMPREPLY=()
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W "%(commands)s --help --version" -- "$word"))
    return
  fi
  case "${COMP_WORDS[1]} $before" in
%(values)s
  esac
  if [ -z "$found" ]; then
    case "${COMP_WORDS[1]} $word" in
%(options)s
    esac
  fi
  [ "$found" = files ] || COMPREPLY=($(compgen -W "$found" -- "$word"))
}
complete -o default -F _pglp_fast pglp-fast
"""


def _bash(commands: dict[str, Command]) -> str:
    """An empty answer lets bash complete files."""
    values, options = [], []
    for name, one in commands.items():
        for option in one.options:
            if option.valued:
                spelt = "|".join(f"'{name} {o}'" for o in option.names)
                values.append(f"    {spelt}) found='{' '.join(option.choices) or 'files'}' ;;")
        known = " ".join(o for option in one.options for o in option.names)
        options.append(f"      '{name} '-*) found='{known}' ;;")
        if one.words:
            options.append(f"      '{name} '*) found='{' '.join(one.words)}' ;;")
    parts = {"commands": " ".join(commands), "values": values, "options": options}
    return _BASH % {k: v if isinstance(v, str) else "\n".join(v) for k, v in parts.items()}


_ZSH = """\
#compdef pglp-fast
# pglp-fast, for zsh; made by: pglp-fast completion zsh
_pglp-fast() {
  local -a commands
  commands=(
%(commands)s
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
%(cases)s
  esac
}
if [ "$funcstack[1]" = "_pglp-fast" ]; then _pglp-fast "$@"; else compdef _pglp-fast pglp-fast; fi
"""


def _zsh(commands: dict[str, Command]) -> str:
    cases = []
    for name, one in commands.items():
        specs = [_zsh_spec(option, spelt) for option in one.options for spelt in option.names]
        words = f"({' '.join(one.words)})" if one.words else "_files"
        specs.append(shlex.quote(f"*:argument:{words}"))
        cases.append(f"    {name})\n      _arguments \\\n        " + " \\\n        ".join(specs))
        cases.append("      ;;")
    listed = [f"    {shlex.quote(f'{name}:{one.text}')}" for name, one in commands.items()]
    return _ZSH % {"commands": "\n".join(listed), "cases": "\n".join(cases)}


def _zsh_spec(option: Option, spelt: str) -> str:
    text = option.text.replace("[", "(").replace("]", ")").replace(":", "\\:")
    values = f"({' '.join(option.choices)})" if option.choices else "_files"
    return shlex.quote(f"{spelt}[{text}]" + (f":value:{values}" if option.valued else ""))


def _fish(commands: dict[str, Command]) -> str:
    names = " ".join(commands)
    lines = ["# pglp-fast, for fish; made by: pglp-fast completion fish"]
    first = f"-n {shlex.quote(f'not __fish_seen_subcommand_from {names}')}"
    for name, one in commands.items():
        lines.append(f"complete -c pglp-fast -f {first} -a {name} -d {_fish_text(one.text)}")
    for name, one in commands.items():
        when = f"complete -c pglp-fast -n '__fish_seen_subcommand_from {name}'"
        for option in one.options:
            spelt = " ".join(
                f"-l {o[2:]}" if o.startswith("--") else f"-s {o[1:]}" for o in option.names
            )
            takes = ""
            if option.choices:
                takes = f" -x -a {shlex.quote(' '.join(option.choices))}"
            elif option.valued:
                takes = " -r"
            lines.append(f"{when} {spelt}{takes} -d {_fish_text(option.text)}")
        if one.words:
            lines.append(f"{when} -f -a {shlex.quote(' '.join(one.words))}")
    return "\n".join(lines) + "\n"


def _fish_text(text: str) -> str:
    """Quoted for fish, where a quote within single quotes is escaped."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
