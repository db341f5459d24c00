"""`headwater dlq`, on a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headwater import Producer
from tests.support.brokers.clusters import Cluster
from tests.support.command import Finished, run_command
from tests.support.redrives import LetterBox

NOWHERE = "127.0.0.1:1"


@pytest.fixture
def box(cluster: Cluster) -> LetterBox:
    return LetterBox(cluster)


def dlq(box: LetterBox, *arguments: object, input: bytes = b"") -> Finished:
    return run_command("dlq", *arguments, "-b", box.bootstrap, input=input)


def done(box: LetterBox, *arguments: object) -> Finished:
    finished = dlq(box, *arguments)
    assert finished.exit_code == 0, finished.stderr
    return finished


def row_of(box: LetterBox) -> dict[str, Any]:
    rows = [json.loads(line) for line in done(box, "list", "--json").lines]
    (row,) = [row for row in rows if row["topic"] == box.dlq]
    return dict(row)


def test_letters_are_listed_and_shown(box: LetterBox) -> None:
    assert (row_of(box)["letters"], row_of(box)["top_error"]) == (0, None)
    box.fill(range(5))
    row = row_of(box)
    assert (row["letters"], row["is_exact"], row["group"]) == (5, True, box.group)
    assert row["top_error"] == "Refused (100 %)"
    assert row["oldest_ms"] <= row["newest_ms"]
    assert box.dlq in done(box, "list").stdout

    shown = done(box, "show", f"{box.dlq}-0@1").stdout
    for line in (
        f"letter:        {box.dlq}-0@1",
        f"origin:        {box.orders}-0@2",
        f"group:         {box.group}",
        "attempts:      6",
        "error:         shop.Refused",
        "message:       no money",
        "value:         2",
        "header:        trace: abc",
    ):
        assert line in shown
    last = [json.loads(line) for line in done(box, "show", box.dlq, "-n", 2, "--json").lines]
    assert len(last) == 2
    (one,) = [
        json.loads(line) for line in done(box, "show", box.dlq, "--key", "key-3", "--json").lines
    ]
    assert (one["value"], one["failure"]["error_class"]) == ("3", "shop.Refused")
    assert done(box, "show", box.dlq, "--error", "x").lines == [
        f"There are no such letters in {box.dlq}."
    ]


def test_a_redrive_from_the_dry_run_to_its_history(box: LetterBox) -> None:
    box.fill(range(4))
    box.fill(range(4, 6), error="timeout")
    tried = done(box, "redrive", box.dlq, "--to", "retry", "--error", "timeout", "--dry-run")
    assert tried.lines[:2] == [
        f"A dry run: nothing is sent. Of 6 letters in {box.dlq}:",
        "  2 would be sent",
    ]
    assert box.read(box.retry) == []
    sent = done(box, "redrive", box.dlq, "--to", "retry", "--error", "timeout")
    assert sent.lines[1:] == ["  2 sent", "  4 not meant by the filter"]
    assert "steer it" in sent.stderr
    assert box.values(box.retry) == [4, 5]
    rest = done(box, "redrive", box.dlq, "--to", "origin", "--json")
    document = json.loads(rest.stdout)
    assert (document["state"], document["counts"]["sent"]) == ("done", 4)
    assert box.values(box.orders) == [0, 1, 2, 3]
    tasks = [json.loads(line) for line in done(box, "tasks", box.dlq, "--json").lines]
    assert [(task["state"], task["counts"]["sent"]) for task in tasks] == [("done", 2), ("done", 4)]
    assert "100%" in done(box, "tasks").stdout
    for action in ("pause", "stop"):
        refused = dlq(box, action, tasks[0]["task"])
        assert (refused.exit_code, refused.stderr) == (
            1,
            f"headwater: The task {tasks[0]['task']} is done already.\n",
        )


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_letters_go_to_a_file_and_back(box: LetterBox, tmp_path: Path, form: str) -> None:
    box.fill(range(3))
    with Producer(bootstrap_servers=box.bootstrap) as producer:
        producer.send(box.dlq, b"\xff\x00", None, headers=[("raw", b"\xfe"), ("none", None)])
        producer.send(box.dlq, None, b"\n")
    path = tmp_path / f"letters.{form}"
    exported = done(box, "export", box.dlq, "--format", form, "-o", path)
    assert exported.stderr == f"headwater: 5 letters of {box.dlq} are exported.\n"
    copy = f"{box.dlq}.copy"
    box.create(copy)
    assert done(box, "import", path, "--topic", copy).lines == [f"5 letters are written to {copy}."]

    def contents(topic: str) -> list[Any]:
        records = box.read(topic)
        return sorted((str(r.key), str(r.value), r.headers, r.timestamp) for r in records)

    assert contents(copy) == contents(box.dlq)


def test_a_file_is_written_over_only_if_one_is_sure(box: LetterBox, tmp_path: Path) -> None:
    box.fill(range(2))
    path = tmp_path / "letters.jsonl"
    done(box, "export", box.dlq, "-o", path)
    kept = path.read_text()
    box.fill(range(1))
    refused = dlq(box, "export", box.dlq, "-o", path)
    assert refused.exit_code == 2
    assert "is there already" in refused.stderr
    assert path.read_text() == kept
    done(box, "export", box.dlq, "-o", path, "--force")
    assert len(path.read_text().splitlines()) == 3
    done(box, "export", box.dlq, "-o", "/dev/null")


def test_letters_are_edited_in_a_file(box: LetterBox, tmp_path: Path) -> None:
    box.fill(range(6))
    path = tmp_path / "letters.jsonl"
    done(box, "export", box.dlq, "-o", path, "--key", "key-2")
    path.write_text(path.read_text().replace('"value": "2"', '"value": "22"'))
    sent = done(box, "redrive", box.dlq, "--to", "origin", "--edited", path)
    assert sent.lines[1:] == ["  1 sent", "  5 left out"]
    (record,) = box.read(box.orders)
    assert record.value == b"22"
    assert dict(record.headers).keys() == {"trace", "headwater-origin", "headwater-redrives"}
    done(box, "redrive", box.dlq, "--to", "origin", "--replace", "1", "one", "--set-key", "k")
    values = sorted(record.value for record in box.read(box.orders))
    assert values == [b"0", b"22", b"3", b"4", b"5", b"one"]


def test_letters_are_deleted_if_one_is_sure(box: LetterBox) -> None:
    box.fill(range(6))
    asked = dlq(box, "purge", box.dlq, "--all", input=b"n\n")
    assert asked.exit_code == 1
    assert len(box.read(box.dlq)) == 6
    done(box, "purge", box.dlq, "--partition", 0, "--before-offset", 2, "--yes")
    assert box.values(box.dlq) == [1, 3, 4, 5]
    assert done(box, "purge", box.dlq, "--all", "--yes").lines == [
        f"Up to 4 letters of {box.dlq} are deleted."
    ]
    assert done(box, "purge", box.dlq, "--all").lines == [
        f"There is nothing to delete in {box.dlq}."
    ]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("redrive", "dlq.x"), "Say where letters go"),
        (("redrive", "dlq.x", "--to", "moon"), "neither origin nor retry"),
        (("redrive", "dlq.x", "--to", "retry", "--header", "x"), "is not NAME=VALUE"),
        (
            ("redrive", "dlq.x", "--to", "retry", "--edited", "f", "--set-key", "k"),
            "what is in the file is sent as it is",
        ),
        (("show", "dlq.x@y"), "is not the id of a message"),
        (("export", "dlq.x", "--format", "xml"), "neither jsonl nor parquet"),
        (("export", "dlq.x", "--format", "parquet"), "Name a file for Parquet"),
        (("purge", "dlq.x"), "Say what to delete"),
        (("purge", "dlq.x", "--before-offset", 5), "the two go together"),
    ],
)
def test_a_command_that_makes_no_sense(arguments: tuple[object, ...], sentence: str) -> None:
    finished = run_command("dlq", *arguments, "-b", NOWHERE)
    assert finished.exit_code == 2
    assert sentence in finished.stderr


def test_what_fails_is_a_sentence(box: LetterBox, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{}\nnonsense\n")
    for arguments, sentence in (
        (("redrive", "dlq.no", "--to", "retry"), "There is no topic 'dlq.no'."),
        (("export", "dlq.no"), "There is no topic 'dlq.no'."),
        (("redrive", box.dlq, "--to-topic", box.dlq), "they would go round for ever."),
        (("import", broken, "--topic", box.dlq), "Line 2 of"),
        (("resume", "nobody"), "There is no redrive task 'nobody'."),
        (("show", f"{box.dlq}-0@77"), "There is no letter"),
    ):
        finished = dlq(box, *arguments)
        assert finished.exit_code == 1
        assert sentence in finished.stderr and "Traceback" not in finished.stderr
