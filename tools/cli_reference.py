"""The reference of the command line: `docs/cli.md`, written from the commands themselves.

`make docs` writes the page; a test fails when it is out of date.
"""

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Final

import typer

from headwater.cli.app import SUBCOMMANDS, build_app

HEADING: Final = """# The command line

Written by `make docs` from the commands themselves; `headwater COMMAND --help` shows the same.

Every command that talks to a cluster takes `--bootstrap-server HOST:PORT,...`, or `-b`, and
speaks to any Kafka 4 cluster. Without it the environment variable `HEADWATER_BOOTSTRAP_SERVER`
names the cluster, or else it is `127.0.0.1:9092`. `--request-timeout-ms` says how long to try, 30
seconds unless a table says otherwise. Neither stands in the tables below.

**Kafka's flags.** Where Kafka has a tool of the same kind its options work, too. `topics`,
`configs` and `groups` take their action as a word or as a flag: `headwater topics --create
--topic orders` is `headwater topics create orders`.

**Failures.** What goes wrong is told in one sentence on standard error. The exit code is 0 if all
went well, 1 if not, and 2 for a command line that makes no sense. `HEADWATER_DEBUG=1` shows where
an error comes from.

**JSON.** With `--json` a command prints one document: an object with names in snake case, in
which what is not there is `null`. Where a document has an entry for each thing that was asked
for, the entry of one that failed has `error`, Kafka's name for it, and `message`, the sentence.
`consume`, `groups`, `transactions`, `log`, `lake` and `pipeline` print an object on a line of its
own for each row instead, since there may be many.

**Colour.** At a terminal tables and findings are coloured. `NO_COLOR=1` turns that off; pipes and
files never get any.

**Tab.** `source <(headwater completion bash)` lets bash complete commands, options, and the names
of topics and groups; `headwater completion --help` tells it for zsh and fish.
"""

#: What the introduction explains once, or nobody needs explained.
_LEFT_OUT: Final = frozenset({"--bootstrap-server", "--request-timeout-ms", "--help"})
_USUAL_TIMEOUT: Final = "30000"


def cli_page() -> str:
    """The whole page."""
    commands = ["| Command | What it does |", "|---|---|"]
    commands += [
        f"| [`{name}`](#headwater-{name}) | {entry.help} |" for name, entry in SUBCOMMANDS.items()
    ]
    sections = [_section(name) for name in SUBCOMMANDS]
    return "\n".join((HEADING, "\n".join(commands), "", *sections))


def _section(name: str) -> str:
    root: Any = typer.main.get_command(build_app([name]))
    command = root.commands[name]
    title = f"headwater {name}"
    parts = [f"## {title}", *_described(command, title)]
    for action, below in getattr(command, "commands", {}).items():
        parts += [f"### {title} {action}", *_described(below, f"{title} {action}")]
    return "\n\n".join(parts) + "\n"


def _described(command: Any, title: str) -> Iterator[str]:
    """The help, the usage and the options of one command."""
    yield _markdown(command.help or "")
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if _is_shown(param)]
    if not hasattr(command, "commands"):
        words = [title, "[OPTIONS]" if options else "", *(_argument(each) for each in arguments)]
        yield f"```\n{' '.join(filter(None, words))}\n```"
    if options:
        yield "\n".join(["| Option | Meaning |", "|---|---|", *map(_row, options)])


def _is_shown(param: Any) -> bool:
    if param.param_type_name != "option" or param.hidden:
        return False
    has_another_default = "--request-timeout-ms" in param.opts and str(param.default) != (
        _USUAL_TIMEOUT
    )
    return has_another_default or not _LEFT_OUT.intersection(param.opts)


def _argument(param: Any) -> str:
    name = str(param.metavar or param.name.upper())
    if name.startswith("["):
        return name
    if param.nargs == -1:
        name = f"{name}..."
    return name if param.required else f"[{name}]"


def _row(param: Any) -> str:
    names = ", ".join(f"`{name}`" for name in param.opts)
    value = "" if param.is_flag else f" `{_metavar(param)}`"
    meaning = _cell(param.help or "")
    default = _default(param)
    if default:
        meaning = f"{meaning} Default: {default}."
    return f"| {names}{_cell(value)} | {meaning} |"


def _metavar(param: Any) -> str:
    choices: Sequence[Any] | None = getattr(param.type, "choices", None)
    if param.metavar:
        return str(param.metavar)
    if choices:
        return "|".join(str(each.value if isinstance(each, Enum) else each) for each in choices)
    return str(param.type.name).split()[0].upper().replace("INTEGER", "N").replace("INT", "N")


def _default(param: Any) -> str:
    if isinstance(param.show_default, str):
        return param.show_default
    default = param.default
    if param.is_flag or default is None or default == () or default == []:
        return ""
    return f"`{default.value if isinstance(default, Enum) else default}`"


def _markdown(text: str) -> str:
    """Help text with its indented examples as code blocks."""
    paragraphs = text.replace("\\[", "[").strip("\n").split("\n\n")
    parts: list[str] = []
    code: list[str] = []
    for paragraph in paragraphs:
        # Where only examples follow the first line, they have lost their indentation.
        if paragraph.startswith(("    ", "headwater ")):
            code.append(re.sub(r"^    ", "", paragraph, flags=re.MULTILINE))
            continue
        if code:
            parts.append(_block(code))
            code = []
        parts.append(paragraph.strip("\n"))
    if code:
        parts.append(_block(code))
    return "\n\n".join(parts)


def _block(examples: Sequence[str]) -> str:
    return "```\n" + "\n".join(example.rstrip() for example in examples) + "\n```"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    print(cli_page(), end="")
