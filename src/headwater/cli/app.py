"""The `headwater` command: finds the subcommand, and turns failures into a sentence.

Starting must feel instant, so a subcommand's module is imported only when the command line names
it; the list in the help is made from the table here.

What goes wrong is told in one sentence on standard error. Exit codes: 0 for success, 1 for failure,
2 for a command line that makes no sense. `HEADWATER_DEBUG=1` shows the traceback instead.

When a shell asks what a Tab should offer (`completion`), it runs this command with the words so far
in the environment, and typer answers in place of the command.
"""

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Final, NamedTuple

import typer

from headwater import __version__
from headwater.base.errors import KafkaError
from headwater.base.printable import printable
from headwater.base.setting import SettingError
from headwater.cli.completion.words import COMPLETE_VARIABLE, prepare_completion
from headwater.cli.flag_form import in_words, with_empty_values
from headwater.cli.usage import USAGE_ERROR, help_hint, tells_usage_itself, usage_sentence


class Subcommand(NamedTuple):
    """A module of this package with a `typer.Typer` called `app`, and its line in the help.

    An action is a command of that app that may be given as a flag too; a word is one that may not.
    `valueless` are the options of an action that may come without a value; a subcommand without
    actions has them under the empty name.
    """

    module: str
    help: str
    actions: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    valueless: Mapping[str, tuple[str, ...]] = MappingProxyType({})


SUBCOMMANDS: Final = {
    "serve": Subcommand("serve.command", "Run a broker."),
    "zookeeper": Subcommand(
        "zookeeper.command", "Run a ZooKeeper, or an ensemble, for development."
    ),
    "metadata": Subcommand(
        "metadata.command",
        "Export the metadata store to a file, import it into another store.",
        words=("export", "import", "check"),
    ),
    "topics": Subcommand(
        "topics.command",
        "Create, list, describe, alter and delete topics.",
        ("create", "list", "describe", "alter", "delete"),
    ),
    "configs": Subcommand(
        "configs.command",
        "Show and change the settings of topics, brokers, groups and client metrics.",
        ("describe", "alter"),
    ),
    "produce": Subcommand("records.produce", "Write lines from standard input to a topic."),
    "consume": Subcommand("records.consume", "Print the records of topics."),
    "get-offsets": Subcommand(
        "records.get_offsets", "Print the first or next offsets of partitions, or those of a time."
    ),
    "delete-records": Subcommand("records.delete_records", "Delete the records before an offset."),
    "delay": Subcommand(
        "delay.command",
        "List, cancel and reschedule messages that wait for their time.",
        words=("list", "show", "cancel", "reschedule", "now", "stats"),
    ),
    "retry": Subcommand(
        "retry.command",
        "Give consumer groups a retry topic and a dead-letter topic.",
        words=("enable", "list"),
    ),
    "dlq": Subcommand(
        "dlq.command",
        "List, show, export, send back and delete dead letters.",
        words=(
            *("list", "show", "export", "import", "redrive", "tasks"),
            *("pause", "resume", "stop", "purge"),
        ),
    ),
    "audit": Subcommand(
        "audit.command",
        "Tell whether records are lost, doubled or late between producers and groups.",
        words=("topic", "ids", "canary", "watch", "replicas"),
    ),
    "trace": Subcommand(
        "trace.command",
        "Tell the whole way of one message, and which messages were slow.",
        words=("show", "slow"),
    ),
    "elect-leaders": Subcommand("elections.command", "Have partitions elect their leaders."),
    "cluster": Subcommand(
        "cluster.command", "Show how a cluster is, once or all the time.", words=("status",)
    ),
    "brokers": Subcommand(
        "brokers.command",
        "List brokers, give a new one its share, empty one, restart and retire them.",
        words=(
            *("list", "describe", "add-share", "drain", "balance", "raise-factor"),
            *("restart-check", "rolling-restart", "unregister"),
        ),
    ),
    "reassign": Subcommand(
        "reassign.command",
        "Have partitions move to other brokers.",
        words=("plan", "execute", "status", "throttle", "cancel"),
    ),
    "groups": Subcommand(
        "groups.command",
        "List, describe and delete consumer groups, and reset their offsets.",
        ("list", "describe", "reset-offsets", "delete-offsets", "delete"),
        ("members",),
        {"list": ("--state", "--type")},
    ),
    "transactions": Subcommand(
        "transactions.command",
        "List and describe transactions, and end those that hang.",
        words=("list", "describe", "describe-producers", "abort", "find-hanging"),
    ),
    "delay-service": Subcommand(
        "delay_service.command", "Forward records of delay topics when their time has come."
    ),
    "retry-service": Subcommand(
        "retry_service.command", "Keep what a group cannot handle, beside any Kafka."
    ),
    "metrics": Subcommand("metrics.command", "Show what brokers count."),
    "doctor": Subcommand("doctor.command", "Say what is wrong with a broker or a cluster."),
    "perf": Subcommand("perf.command", "Measure any Kafka-compatible cluster."),
    "pipeline": Subcommand("pipeline.command", "Run declared pipelines on Spark."),
    "demo": Subcommand(
        "demo.command",
        "See it all at work: a broker, a shop's orders, pipelines on Spark.",
        valueless={"": ("--keep",)},
    ),
    "log": Subcommand("log.command", "Look into a broker's log files and verify them."),
    "lake": Subcommand(
        "lake.command", "Look into lake tables, verify and compact them, replay archives."
    ),
    "completion": Subcommand(
        "completion.command", "Print what a shell needs to complete with Tab."
    ),
}

EXIT_USAGE: Final = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    given = in_words_of_subcommand(list(sys.argv[1:] if arguments is None else arguments))
    if COMPLETE_VARIABLE in os.environ:
        given = prepare_completion(in_words_of_subcommand)
    debugging = os.environ.get("HEADWATER_DEBUG") == "1"
    try:
        code = build_app(given)(args=given, prog_name="headwater", standalone_mode=False)
    except SystemExit as finished:
        return _exit_code(finished)
    except USAGE_ERROR as mistake:
        if not tells_usage_itself(mistake):
            print(f"headwater: {usage_sentence(mistake, _actions(given))}", file=sys.stderr)
            print(help_hint(mistake), file=sys.stderr)
        return EXIT_USAGE
    except Exception as failure:
        if debugging:
            raise
        for sentence in describe_failure(failure):
            print(f"headwater: {printable(sentence)}", file=sys.stderr)
        return 1
    return code if isinstance(code, int) else 0


def build_app(arguments: Sequence[str]) -> typer.Typer:
    """The command with the subcommand that `arguments` name; the others only show up in help."""
    app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
    app.callback()(_root)
    named = _named(arguments)
    for name, subcommand in SUBCOMMANDS.items():
        if name == named:
            module = importlib.import_module(f"headwater.cli.{subcommand.module}")
            _add_loaded(app, name, module.app)
        else:
            subapp = typer.Typer()
            subapp.callback()(_nothing)
            app.add_typer(subapp, name=name, help=subcommand.help)
    return app


def _add_loaded(app: typer.Typer, name: str, subapp: typer.Typer) -> None:
    """A module's one command is the subcommand itself; several are commands below it."""
    if subapp.registered_callback is None and len(subapp.registered_commands) == 1:
        command = subapp.registered_commands[0]
        command.name = name
        app.registered_commands.append(command)
    else:
        app.add_typer(subapp, name=name)


def in_words_of_subcommand(arguments: list[str]) -> list[str]:
    """The command line with the action of a subcommand as a word, if it came as a flag."""
    for position, argument in enumerate(arguments):
        if not argument.startswith("-"):
            front, rest = arguments[: position + 1], arguments[position + 1 :]
            subcommand = SUBCOMMANDS.get(argument)
            if subcommand is None:
                return arguments
            rest = in_words(rest, subcommand.actions, subcommand.words)
            action = rest[0] if rest and subcommand.actions else ""
            valueless = subcommand.valueless.get(action, ())
            return front + with_empty_values(rest, valueless)
    return arguments


def _actions(arguments: Sequence[str]) -> tuple[str, ...]:
    """The actions of the subcommand that is named."""
    named = SUBCOMMANDS.get(_named(arguments) or "")
    return () if named is None else named.actions


def _named(arguments: Sequence[str]) -> str | None:
    """The subcommand, if there is one."""
    return next((argument for argument in arguments if not argument.startswith("-")), None)


def describe_failure(failure: Exception) -> Sequence[str]:
    """A sentence for the person at the keyboard; one for each fault of a configuration."""
    if isinstance(failure, SettingError):
        return failure.sentences
    if isinstance(failure, KafkaError):
        return [str(failure)]
    if isinstance(failure, OSError) and failure.strerror:
        place = f"{failure.filename}: " if failure.filename is not None else ""
        return [f"{place}{failure.strerror.rstrip('.')}."]
    return [
        f"unexpected {type(failure).__name__}: {failure} "
        "(set HEADWATER_DEBUG=1 to see where it comes from)"
    ]


def _exit_code(finished: SystemExit) -> int:
    if finished.code is None or isinstance(finished.code, int):
        return finished.code or 0
    print(finished.code, file=sys.stderr)
    return 1


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"headwater {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """A Kafka-compatible event-streaming platform in Python."""


def _nothing() -> None:
    """Stands in for a subcommand that was not loaded."""
