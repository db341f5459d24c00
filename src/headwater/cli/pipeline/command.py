"""`headwater pipeline`: run declared pipelines on Spark, check their files, watch and stop runs.

Spark, YAML and the pipelines themselves are imported when a command runs, so that `--help` and a
wrong option answer at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from headwater.cli.options.cluster import BOOTSTRAP_VARIABLE, BootstrapServer

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

STATE_ROOT = "headwater-pipelines"

# A paragraph is one line here: the help wraps it to the terminal, and keeps line breaks in it.
HELP = """\
Run data pipelines on Spark from a YAML file: topics and tables in, SQL, topics and tables out.

A file that counts orders by minute, say counts.yaml:

    sources:
      orders:
        topic: orders
        schema: id STRING, at TIMESTAMP
        watermark: {column: at, delay: 1 minute}
    steps:
      counts: |
        SELECT window.start AS minute, count(*) AS orders
        FROM orders GROUP BY window(at, '1 minute')
    sinks:
      result: {topic: order-counts}

Check it, run it until Ctrl-C, and watch it from another terminal:

    headwater pipeline validate counts.yaml

    headwater pipeline run counts.yaml

    headwater pipeline status counts

Some pipelines are built in, `sample` makes data for them, and `show` prints one to start from:

    headwater pipeline run archive --set topics=orders --set lake=./lake

    headwater pipeline show join > my-join.yaml

docs/pipelines.md explains them, docs/pipeline-reference.md has every field.
"""

RUN_HELP = """\
Run a pipeline until it is stopped, or once, or over a range of time.

By default it runs until Ctrl-C, SIGTERM or `headwater pipeline stop`. Then each query finishes \
its current batch; a second Ctrl-C ends it at once. Either way nothing is lost, and the next run \
continues where this one stopped.

Process what is there now and then end, for a job that cron starts:

    headwater pipeline run counts.yaml --once

Process the records of one day again, beside the normal run and with separate checkpoints:

    headwater pipeline run counts.yaml --from 2026-01-31 --until 2026-02-01

Run on a cluster, with a Spark setting, or with a variable of the file:

    headwater pipeline run counts.yaml --master spark://host:7077 --conf spark.cores.max=8

    headwater pipeline run counts.yaml --set topic=orders

The progress, and the last line, tell how many rows were read, written and rejected; rejected \
are records that could not be decoded.

The exit code is 0 after an orderly end, 1 if a query failed or the pipeline could not start, 2 \
for a wrong command line, 130 after a second Ctrl-C. It is 3 if a run with --once or over a range \
of time rejected every row that it read, unless --allow-all-rejected is given.
"""

VALIDATE_HELP = """\
Check a pipeline's file without running it; every problem is a line with its place.

    headwater pipeline validate counts.yaml

    counts.yaml:4:13: 'format' cannot be 'jsn': did you mean 'json'?

No broker is asked and no code is run. If the file has SQL, Java is started for Spark's parser, \
which takes some seconds; --no-sql skips that. Whether a column exists shows only in a run. \
The exit code is 1 if there are problems.
"""

STATUS_HELP = """\
Show how a pipeline is doing: its queries with rows, rate, lag and watermark, or why it ended.

A run is running, stopped (it was asked to), finished (it had nothing left to do), failed, or \
crashed (its process is gone). The exit code is 1 for the last two, and if there is no run.

Rows are those of the batches that this run has committed; a batch that a crash interrupted counts \
in the run that repeats it.
"""

STOP_HELP = """\
Ask a run to stop, and wait until it has.

Each query finishes its current batch. With --now it does not: nothing is lost, and the next run \
repeats the batch. The exit code is 1 if the run has not ended in time.
"""

SAMPLE_HELP = """\
Fill two new topics with orders and payments of a shop, for the built-in pipelines to read.

    headwater pipeline sample

    headwater pipeline run aggregate --once --set orders=shop-orders

    headwater pipeline run join --once --set orders=shop-orders --set payments=shop-payments

    headwater pipeline run archive --once --set topics=shop-orders,shop-payments

It is the same records each time. Some come late or twice, and a few are malformed on purpose.
"""

PipelineArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="FILE|BUILTIN",
        show_default=False,
        help="A pipeline's file, or the name of a built-in one.",
    ),
]
NameArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAME", show_default=False, help="The name of the pipeline.")
]
Assignments: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="The value of a variable in the file; may be repeated."
    ),
]
StateDirectory: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--state-dir",
        metavar="DIR",
        help="The directory that holds the progress and checkpoints of each pipeline.",
        show_default=f"./{STATE_ROOT}",
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]


@app.callback(help=HELP)
def _pipeline() -> None:
    pass


@app.command(help=RUN_HELP)
def run(
    pipeline: PipelineArgument,
    once: Annotated[
        bool, typer.Option("--once", help="Process what is there now, and end.")
    ] = False,
    from_time: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="Backfill: only records from this time on, such as 2026-01-31T12:00:00Z (UTC "
            "if no zone is named), '2 hours ago' or milliseconds.",
        ),
    ] = None,
    until_time: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Backfill: only records before this time."),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            "--master",
            help="The Spark to run on: local[N], spark://host:7077, yarn, k8s://...",
            show_default="local[*]",
        ),
    ] = None,
    assignments: Assignments = None,
    configs: Annotated[
        list[str] | None,
        typer.Option("--conf", metavar="NAME=VALUE", help="A Spark setting; may be repeated."),
    ] = None,
    state_directory: StateDirectory = None,
    bootstrap_server: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-server",
            "-b",
            metavar="HOST:PORT,...",
            help="Any brokers of the cluster, instead of what the file says; "
            f"{BOOTSTRAP_VARIABLE} is for files that say nothing.",
        ),
    ] = None,
    allow_all_rejected: Annotated[
        bool,
        typer.Option(
            "--allow-all-rejected",
            help="Exit with 0 though not one row could be decoded.",
        ),
    ] = False,
) -> None:
    from headwater.cli.pipeline.arguments import parse_assignments, parse_mode
    from headwater.cli.pipeline.run import run_from_command_line

    mode = parse_mode(once, from_time, until_time)
    run_from_command_line(
        pipeline,
        mode,
        variables=parse_assignments(assignments, "--set"),
        configs=parse_assignments(configs, "--conf"),
        master=master,
        state_root=state_directory,
        bootstrap_server=bootstrap_server,
        allow_all_rejected=allow_all_rejected,
    )


@app.command(help=VALIDATE_HELP)
def validate(
    pipeline: PipelineArgument,
    assignments: Assignments = None,
    no_sql: Annotated[
        bool,
        typer.Option("--no-sql", help="Do not start Java to check SQL with Spark's parser."),
    ] = False,
) -> None:
    from headwater.cli.output.standard_output import standard_output
    from headwater.cli.pipeline.arguments import parse_assignments
    from headwater.cli.pipeline.file import print_validation

    with standard_output():
        print_validation(pipeline, parse_assignments(assignments, "--set"), with_sql=not no_sql)


@app.command("list", help="List the runs of pipelines, with the state that each is in.")
def list_runs(state_directory: StateDirectory = None, as_json: AsJson = False) -> None:
    from headwater.cli.output.standard_output import standard_output
    from headwater.cli.pipeline.status import print_list

    with standard_output():
        print_list(state_directory or Path(STATE_ROOT), as_json=as_json)


@app.command(help=STATUS_HELP)
def status(
    name: NameArgument, state_directory: StateDirectory = None, as_json: AsJson = False
) -> None:
    from headwater.cli.output.standard_output import standard_output
    from headwater.cli.pipeline.status import print_status

    with standard_output():
        is_well = print_status(name, state_directory or Path(STATE_ROOT), as_json=as_json)
    if not is_well:
        raise typer.Exit(1)


@app.command(help=STOP_HELP)
def stop(
    name: NameArgument,
    now: Annotated[
        bool, typer.Option("--now", help="Do not wait for the current batches.")
    ] = False,
    timeout_s: Annotated[
        float,
        typer.Option("--timeout", metavar="SECONDS", min=0.0, help="How long to wait."),
    ] = 120.0,
    state_directory: StateDirectory = None,
) -> None:
    from headwater.cli.pipeline.stop import stop_runs

    if not stop_runs(name, state_directory or Path(STATE_ROOT), now=now, timeout_s=timeout_s):
        raise typer.Exit(1)


@app.command(help="Print the file of a built-in pipeline, to copy and change.")
def show(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="BUILTIN", show_default=False, help="Its name; without one, all are listed."
        ),
    ] = None,
) -> None:
    from headwater.cli.output.standard_output import standard_output
    from headwater.cli.pipeline.file import print_builtin

    with standard_output():
        print_builtin(name)


@app.command(help=SAMPLE_HELP)
def sample(
    order_count: Annotated[
        int, typer.Option("--orders", metavar="COUNT", min=1, help="How many orders.")
    ] = 1000,
    prefix: Annotated[
        str,
        typer.Option(metavar="TEXT", help="What the names of the two topics begin with."),
    ] = "shop-",
    bootstrap_server: BootstrapServer = None,
) -> None:
    from headwater.cli.output.standard_output import standard_output
    from headwater.cli.pipeline.sample import print_sample

    with standard_output():
        print_sample(bootstrap_server, prefix, order_count)
