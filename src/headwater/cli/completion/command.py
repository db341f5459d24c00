"""`headwater completion`: print the script that lets a shell complete commands with Tab."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from headwater.cli.completion.words import COMPLETE_VARIABLE

app = typer.Typer(pretty_exceptions_enable=False)

HELP = """\
Print a script that lets your shell complete commands, options, choices, topics and groups with Tab.

For bash, in this terminal or, as a line of ~/.bashrc, in every one:

    source <(headwater completion bash)

For zsh, in ~/.zshrc below the line with compinit:

    source <(headwater completion zsh)

For fish, once:

    headwater completion fish > ~/.config/fish/completions/headwater.fish

Names of topics and groups come from the cluster that --bootstrap-server or \
HEADWATER_BOOTSTRAP_SERVER names, if it answers quickly.
"""


class Shell(StrEnum):
    """The shells that there is a script for."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


@app.command(help=HELP)
def completion(
    shell: Annotated[
        Shell, typer.Argument(metavar="SHELL", show_default=False, help="bash, zsh or fish.")
    ],
) -> None:
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    print(
        get_completion_script(
            prog_name="headwater", complete_var=COMPLETE_VARIABLE, shell=shell.value
        )
    )
