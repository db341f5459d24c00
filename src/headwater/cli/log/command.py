"""`headwater log`: look into a broker's log files, and verify them.

Both commands only read, and may run beside a broker. What they do is in `headwater.storage`, which
is imported when a command runs, so that `--help` and a wrong option answer at once.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from headwater.cli.output.standard_output import standard_output

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

EXIT_FAULTS = 1


# A paragraph is one line here: the help wraps it to the terminal, and keeps line breaks in it.
DUMP_HELP = """\
Show what stands in log files, in the format of Apache Kafka's kafka-dump-log.sh.

What is wrong with a file goes to standard error and makes the exit code 1.

Every record of a segment, with key and value:

    headwater log dump --print-data-log orders-0/00000000000000000000.log

Does an index fit its log?

    headwater log dump --verify-index-only orders-0/00000000000000000000.index
"""

VERIFY_HELP = """\
Check log directories without changing anything, also beside a running broker.

Every checksum, the order of offsets and leader epochs, each index against its log, \
aborted transactions, snapshots and checkpoints are checked. \
A line for each problem says what the next start would do about it. \
A note is worth knowing though nothing is wrong: leftovers, or an end that is being written.

The exit code is 0 if all is sound, 1 if there are problems, 2 if there is no log to check.

Before and after moving a disk:

    headwater log verify --deep /var/lib/headwater
"""


class Decoder(StrEnum):
    """How keys and values are shown."""

    string = "string"
    hex = "hex"
    base64 = "base64"


@app.callback()
def _log() -> None:
    """Look into a broker's log files and verify them. Nothing is ever changed."""


@app.command(help=DUMP_HELP)
def dump(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            show_default=False,
            help="Files of a log directory: segments, indexes, snapshots, checkpoints, metadata.",
        ),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option("--files", help="The same as a list with commas, as Apache's tool takes it."),
    ] = None,
    print_data_log: Annotated[
        bool,
        typer.Option(
            "--print-data-log", help="Show each record with its key and value, below its batch."
        ),
    ] = False,
    deep_iteration: Annotated[
        bool,
        typer.Option(
            "--deep-iteration", help="Show each record's offset, time and sizes, without its data."
        ),
    ] = False,
    key_decoder: Annotated[
        Decoder | None,
        typer.Option(
            help="How to write keys; implies --print-data-log. "
            "`string` is UTF-8 with escapes for whatever is no text.",
            show_default="string",
        ),
    ] = None,
    value_decoder: Annotated[
        Decoder | None,
        typer.Option(help="How to write values; implies --print-data-log.", show_default="string"),
    ] = None,
    skip_batch_metadata: Annotated[
        bool, typer.Option("--skip-batch-metadata", help="Leave out the lines of batches.")
    ] = False,
    skip_record_metadata: Annotated[
        bool,
        typer.Option("--skip-record-metadata", help="Of records show only keys and values."),
    ] = False,
    max_bytes: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Of each log file read only this many bytes from its start.",
            show_default="all",
        ),
    ] = None,
    index_sanity_check: Annotated[
        bool,
        typer.Option(
            "--index-sanity-check",
            help="Of indexes show only whether they pass the quick check of a starting broker.",
        ),
    ] = False,
    verify_index_only: Annotated[
        bool,
        typer.Option(
            "--verify-index-only", help="Of indexes show only entries that contradict the log."
        ),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="One JSON object per line and thing, each with a `type`."),
    ] = False,
) -> None:
    from headwater.storage.inspection.dump.as_json import JsonDump
    from headwater.storage.inspection.dump.as_text import TextDump
    from headwater.storage.inspection.dump.dump import DumpOptions, dump_file
    from headwater.storage.inspection.read_only_files import ReadOnlyFiles

    wanted = [*(paths or []), *(path for group in files or [] for path in group.split(",") if path)]
    if not wanted:
        raise typer.BadParameter("name at least one file", param_hint="FILE...")
    print_data = print_data_log or key_decoder is not None or value_decoder is not None
    options = DumpOptions(
        deep=deep_iteration or print_data,
        max_bytes=max_bytes,
        verify_index_only=verify_index_only,
        index_sanity_check=index_sanity_check,
    )
    keys, values = key_decoder or Decoder.string, value_decoder or Decoder.string
    writer: JsonDump | TextDump
    with standard_output():
        if as_json:
            writer = JsonDump(
                sys.stdout,
                print_data=print_data,
                key_decoder=keys,
                value_decoder=values,
                skip_batches=skip_batch_metadata,
            )
        else:
            writer = TextDump(
                sys.stdout,
                sys.stderr,
                print_data=print_data,
                key_decoder=keys,
                value_decoder=values,
                skip_batches=skip_batch_metadata,
                skip_record_metadata=skip_record_metadata,
            )
        for path in wanted:
            writer.write(dump_file(ReadOnlyFiles(), path, options))
        sys.stdout.flush()
        writer.finish()
    if writer.fault_count:
        raise typer.Exit(EXIT_FAULTS)


@app.command(help=VERIFY_HELP)
def verify(
    directories: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR",
            show_default=False,
            help="A partition's directory, a log directory, or one that holds log directories.",
        ),
    ],
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Decompress every batch and look at every record in it too."),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="One JSON object per finding, and one with the summary."),
    ] = False,
) -> None:
    from headwater.cli.log.verification import run_verification
    from headwater.storage.inspection.verify.verify import NotALogDirectoryError

    with standard_output():
        try:
            problem_count = run_verification(directories, deep=deep, as_json=as_json)
        except NotALogDirectoryError as error:
            raise typer.BadParameter(str(error), param_hint="DIR") from None
    if problem_count:
        raise typer.Exit(EXIT_FAULTS)
