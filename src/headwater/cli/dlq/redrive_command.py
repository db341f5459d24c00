"""`headwater dlq redrive`: send dead letters back."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.dlq.options import (
    DeadLetterTopic,
    FromTime,
    FromTopic,
    OfGroup,
    OfOrigin,
    ToTime,
    WithError,
    WithHeaders,
    WithKey,
    given_filter,
    given_headers,
    on_redrives,
)
from headwater.cli.options.cluster import BootstrapServer
from headwater.cli.options.cluster_names import complete_topics
from headwater.cli.options.json_option import AsJson

HELP = """\
Send dead letters back, as the records were before they failed.

See first what would be sent, and then send it, by one error and not too fast:

    headwater dlq redrive dlq.billing --to retry --dry-run

    headwater dlq redrive dlq.billing --to retry --error timeout --rate 500

--to retry sends each letter to the retry topic of the group that could not handle it: no other \
group sees it again. --to origin sends it to the topic that it was in at first, where all groups \
see it again. --to-topic sends it to any other topic.

It is a task: other terminals see it with `headwater dlq tasks`, and steer it with `pause`, \
`resume` and `stop`. If it is killed, `headwater dlq resume` carries on: no letter is lost, and \
readers of committed records see none twice. Letters that a task has sent stay in the dead-letter \
topic, and later tasks leave them out, unless --again is given. What was sent back --max-redrives \
times and failed again stays as well.

Letters can be edited on the way: by options, or in a file.

    headwater dlq export dlq.billing --key 4711 --output letters.jsonl

    headwater dlq redrive dlq.billing --to origin --edited letters.jsonl
"""


def redrive(
    topic: DeadLetterTopic,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="origin|retry", help="Where letters go: see above."),
    ] = None,
    to_topic: Annotated[
        str | None,
        typer.Option(
            "--to-topic",
            metavar="TOPIC",
            help="Send them to this topic instead.",
            autocompletion=complete_topics,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count, and show some; nothing is sent.")
    ] = False,
    group: OfGroup = None,
    origin_topic: FromTopic = None,
    origin: OfOrigin = None,
    error: WithError = None,
    key: WithKey = None,
    header: WithHeaders = None,
    from_time: FromTime = None,
    to_time: ToTime = None,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            metavar="N",
            min=0.001,
            help="So many letters a second at most.",
            show_default="no limit",
        ),
    ] = None,
    max_redrives: Annotated[
        int,
        typer.Option("--max-redrives", min=1, help="Leave what was sent back so often already."),
    ] = 3,
    again: Annotated[
        bool, typer.Option("--again", help="Send also what an earlier task has sent.")
    ] = False,
    set_value: Annotated[
        str | None, typer.Option("--set-value", metavar="TEXT", help="Give all this value.")
    ] = None,
    set_key: Annotated[
        str | None, typer.Option("--set-key", metavar="TEXT", help="Give all this key.")
    ] = None,
    set_header: Annotated[
        list[str] | None,
        typer.Option("--set-header", metavar="NAME=VALUE", help="Give all this header."),
    ] = None,
    remove_header: Annotated[
        list[str] | None,
        typer.Option("--remove-header", metavar="NAME", help="Take this header off."),
    ] = None,
    replace_value: Annotated[
        tuple[str, str] | None,
        typer.Option("--replace", metavar="OLD NEW", help="Replace a text in all values."),
    ] = None,
    edited: Annotated[
        str | None,
        typer.Option(
            "--edited",
            metavar="FILE",
            help="Send the letters of this file, which was exported and edited, and no others.",
        ),
    ] = None,
    as_json: AsJson = False,
    bootstrap_server: BootstrapServer = None,
) -> None:
    from headwater.cli.dlq import redriving
    from headwater.cli.dlq.files import edits_of
    from headwater.delivery.redrive.tasks.plan import Edits, RedrivePlan, To

    if (to is None) == (to_topic is None):
        raise typer.BadParameter(
            "say where letters go: --to retry, --to origin, or --to-topic TOPIC", param_hint="--to"
        )
    if to not in (None, To.ORIGIN, To.RETRY):
        raise typer.BadParameter(
            f"{to!r} is neither origin nor retry; for a topic there is --to-topic",
            param_hint="--to",
        )
    if edited is not None and any((set_value, set_key, set_header, remove_header, replace_value)):
        raise typer.BadParameter(
            "what is in the file is sent as it is: make all changes there", param_hint="--edited"
        )
    plan = RedrivePlan(
        source=topic,
        to=To.TOPIC if to is None else To(to),
        topic=to_topic,
        filter=given_filter(group, origin_topic, origin, error, key, header, (from_time, to_time)),
        edits=Edits(
            value=None if set_value is None else set_value.encode(),
            key=None if set_key is None else set_key.encode(),
            headers=given_headers(set_header, "--set-header"),
            removed_headers=tuple(remove_header or ()),
            replaced=()
            if replace_value is None
            else ((replace_value[0].encode(), replace_value[1].encode()),),
        ),
        rate=rate,
        max_redrives=max_redrives,
        again=again,
        has_function=edited is not None,
    )
    edit = None if edited is None else edits_of(edited, topic)
    action = redriving.preview if dry_run else redriving.redrive
    on_redrives(bootstrap_server, lambda redrives: action(redrives, plan, edit, as_json=as_json))
