"""What the command says to wrong usages: one sentence, the right exit code, and what was meant.

`{dir}` is a directory and `{file}` a file in it, `{data}` and `{here}` are the directory and the
address of a broker that runs, `{web}` is the address of a web server.
"""

import shlex
import socketserver
import threading
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from headwater.testing import broker
from tests.support.command import run_command


class Place(NamedTuple):
    """What the usages talk about, by name."""

    names: dict[str, str]

    def fill(self, text: str) -> str:
        for name, value in self.names.items():
            text = text.replace(f"{{{name}}}", value)
        return text


class _WebServer(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.recv(4096)
        self.request.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("wrong")
    (directory / "file").write_text("no JSON")
    web = socketserver.TCPServer(("127.0.0.1", 0), _WebServer)
    threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.05}).start()
    data = tmp_path_factory.mktemp("data")
    settings = {"auto.create.topics.enable": "false"}
    try:
        with broker(data, settings=settings) as running:
            running.create_topic("orders", partitions=2)
            running.create_topic("payments")
            names = {
                "dir": str(directory),
                "file": str(directory / "file"),
                "data": str(data),
                "here": running.bootstrap,
                "web": f"127.0.0.1:{web.server_address[1]}",
            }
            made = "groups reset-offsets billing --topic orders --to-earliest --execute -b {here}"
            assert run_command(*shlex.split(Place(names).fill(made))).exit_code == 0
            yield Place(names)
    finally:
        web.shutdown()
        web.server_close()


#: Command lines that make no sense: exit code 2, and where to read more.
SENSELESS = (
    ("topcs list", "There is no command 'topcs'; did you mean 'topics'?"),
    ("topics lst", "There is no command 'lst'; did you mean 'list'?"),
    ("--nonsense", "There is no option '--nonsense'."),
    ("--nonsense topics list", "There is no option '--nonsense'."),
    (
        "topics create x --partiton 3",
        "There is no option '--partiton'; did you mean '--partitions'?",
    ),
    ("topics create", "Name a topic (TOPIC or --topic)."),
    ("topics create x --topic y", "Name the topic once (TOPIC and --topic)."),
    ("topics create x -p 0", "--partitions: 0 is less than 1."),
    ("topics create x -p many", "--partitions: 'many' is not a number."),
    ("topics create x --partitions", "Option '--partitions' requires an argument."),
    ("topics create x --config retention.ms", "--config: 'retention.ms' should be NAME=VALUE."),
    ("topics --topic orders", "Say what to do: create, list, describe, alter or delete."),
    ("topics --create --delete --topic x", "create and --delete are two actions: name one."),
    ("groups --group billing", "Say what to do: list, describe, reset-offsets,"),
    ("consume", "Name a topic, or topics by --include (TOPIC)."),
    (
        "consume orders --partition 0 --offset -5",
        "--offset: '-5' is neither an offset nor earliest or latest.",
    ),
    ("consume orders --offset 5", "Say which partition the offset is in (--partition)."),
    (
        "consume orders --from-datetime yesterday",
        "--from-datetime: 'yesterday' should be like 2026-01-31T12:00:00, with Z or +01:00",
    ),
    (
        "consume orders --isolation-level commited",
        "--isolation-level: 'commited' is not one of read_uncommitted, read_committed; "
        "did you mean 'read_committed'?",
    ),
    (
        "consume orders --property print.keys=true",
        "--property: there is no property 'print.keys'; did you mean 'print.key'?",
    ),
    (
        "consume orders --group g --partition 0",
        "--group: a group decides itself what it reads: leave out --partition.",
    ),
    ("produce orders hello", "'hello' is more than this command takes."),
    (
        "produce orders --compression-codec zip",
        "--compression-codec: 'zip' is not one of none, gzip, snappy, lz4, zstd; "
        "did you mean 'gzip'?",
    ),
    ("get-offsets orders --time noon", "--time: 'noon' is neither a timestamp nor one of latest,"),
    ("delete-records orders --partition 0 --offset -7", "--offset: -7 is less than -1."),
    ("delete-records --offset-json-file {file}", "--offset-json-file: {file} is not JSON: "),
    ("configs describe", "Say what the settings belong to, once (--topic, --broker,"),
    (
        "configs describe --entity-type topic --entity-name orders",
        "--entity-type: 'topic' is not one of topics, brokers, broker-loggers, groups, "
        "client-metrics; did you mean 'topics'?",
    ),
    ("groups describe", "Name a group (GROUP, --group or --all-groups)."),
    (
        "groups reset-offsets billing --topic orders",
        "Say where to, in one way (--to-earliest, --to-latest,",
    ),
    (
        "groups reset-offsets billing --topic orders --to-datetime noon",
        "--to-datetime: 'noon' should be like 2026-01-31T12:00:00.000, with +01:00",
    ),
    ("groups list --state Stabel", "--state: 'stabel' is not one of Empty, Stable,"),
    ("log verify {dir}/none", "DIR: {dir}/none is not a directory."),
    ("metrics --raw --json", "Choose one of the two (--raw and --json)."),
    ("zookeeper --port 99999", "--port: 99999 is not between 0 and 65535."),
    ("completion tcsh", "SHELL: 'tcsh' is not one of 'bash', 'zsh', 'fish'."),
)

#: What cannot be done: exit code 1, and nothing but the sentence.
FAILING = (
    ("topics create orders -b {here}", "The topic 'orders' exists already."),
    (
        "topics create new -r 3 -b {here}",
        "The replication factor 3 is larger than the number of brokers, which is 1.",
    ),
    ("topics create 'bad name' -b {here}", "The topic name 'bad name' has a character other than"),
    (
        "topics create new --config retenton.ms=1 -b {here}",
        "There is no topic setting 'retenton.ms'; did you mean retention.ms or",
    ),
    (
        "topics create new --config retention.ms=soon -b {here}",
        "The setting retention.ms cannot be 'soon': it must be a whole number of at least -1.",
    ),
    (
        "topics describe ordrs -b {here}",
        "There is no topic 'ordrs', nor one that matches it; did you mean 'orders'?",
    ),
    (
        "topics delete ordrs -b {here}",
        "There is no topic 'ordrs', nor one that matches it; did you mean 'orders'?",
    ),
    (
        "topics alter orders -p 1 -b {here}",
        "Topic already has 2 partitions; 1 would not be an increase.",
    ),
    ("topics list -b 127.0.0.1:1", "Cannot connect to 127.0.0.1:1: Connection refused."),
    (
        "topics list -b {web}",
        "Cannot connect to {web}: it ends the connection instead of answering; is it a Kafka "
        "broker, without TLS?",
    ),
    ("topics list -b host:port", "'host:port' is not a bootstrap server: it should be a host and"),
    ("consume ordrs -b {here}", "There is no topic 'ordrs'; did you mean 'orders'?"),
    (
        "consume orders --partition 7 -b {here}",
        "Topic 'orders' has no partition 7: it has partitions 0 to 1.",
    ),
    (
        "consume orders --group g --consumer-property max.pol.records=1 -b {here}",
        "There is no consumer setting 'max.pol.records'; did you mean max.poll.records or",
    ),
    (
        "produce orders --property parse.key=true -b {here}",
        "There is no key separator in line 1: 'a line'.",
    ),
    (
        "produce orders --partition 9 -b {here}",
        "Topic 'orders' has no partition 9: it has partitions 0 to 1.",
    ),
    (
        "produce ordrs --max-block-ms 100 -b {here}",
        "Topic 'ordrs' was not found within max.block.ms: There is no topic 'ordrs'.",
    ),
    ("get-offsets ordrs -b {here}", "No partition matches 'ordrs'; did you mean 'orders'?"),
    (
        "delete-records orders --partition 0 --offset 99 -b {here}",
        "orders-0: The offset is outside the range that the partition holds.",
    ),
    ("delete-records --offset-json-file {dir}/none", "{dir}/none: No such file or directory."),
    ("configs describe --topic ordrs -b {here}", "There is no topic 'ordrs'; did you mean"),
    ("configs describe --broker 9 -b {here}", "There is no broker 9 in the cluster."),
    (
        "configs alter --topic orders --add-config retention.ms=soon -b {here}",
        "The setting retention.ms cannot be 'soon': it must be a whole number of at least -1.",
    ),
    ("groups describe biling -b {here}", "There is no group 'biling'; did you mean 'billing'?"),
    ("groups delete biling -b {here}", "There is no group 'biling'; did you mean 'billing'?"),
    (
        "groups reset-offsets billing --topic ordrs --to-earliest -b {here}",
        "There is no topic 'ordrs'; did you mean 'orders'?",
    ),
    ("transactions describe nobody -b {here}", "There is no transactional id 'nobody'."),
    ("metrics -b {here}", "No metrics are served by broker 0: start it with --set metrics."),
    (
        "serve --set num.partition=3",
        "There is no broker setting 'num.partition' in --set; did you mean num.partitions or",
    ),
    ("serve --config {dir}/none", "{dir}/none: No such file or directory."),
    (
        "serve --listen {here} --data-dir {dir}/a",
        "Cannot listen on {here}: the port is in use by another program.",
    ),
    (
        "serve --listen 127.0.0.1:0 --data-dir {data}",
        "The metadata store {data}/metadata.sqlite is in use by another process.",
    ),
    (
        "serve --listen 127.0.0.1:0 --data-dir {file}",
        "The metadata store {file}/metadata.sqlite cannot be opened: {file} is not a directory.",
    ),
)


@pytest.mark.parametrize(("usage", "sentence"), SENSELESS)
def test_a_senseless_command_line(usage: str, sentence: str, place: Place) -> None:
    finished = run_command(*shlex.split(place.fill(usage)))
    assert (finished.exit_code, finished.stdout) == (2, "")
    told, hint = finished.stderr.splitlines()
    assert told.startswith(f"headwater: {place.fill(sentence)}")
    assert told.endswith((".", "?"))
    assert hint.startswith("Try 'headwater") and hint.endswith("--help'.")


@pytest.mark.parametrize(("usage", "sentence"), FAILING)
def test_what_cannot_be_done(usage: str, sentence: str, place: Place) -> None:
    finished = run_command(*shlex.split(place.fill(usage)), input=b"a line\n")
    assert finished.exit_code == 1
    [told] = finished.stderr.splitlines()
    assert told.startswith(f"headwater: {place.fill(sentence)}")
    assert told.endswith((".", "?", ")"))


def test_a_group_with_members_is_left_alone(place: Place) -> None:
    from headwater import Consumer

    where = ("-b", place.names["here"])
    with Consumer(bootstrap_servers=place.names["here"], group_id="busy") as consumer:
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            consumer.poll(0.1)
        reset = ("reset-offsets", "busy", "--topic", "orders", "--to-latest", "--execute")
        refused = run_command("groups", *reset, *where)
        assert (refused.exit_code, refused.stderr) == (
            1,
            "headwater: The offsets of group 'busy' can only be reset while it has no members: "
            "it is Stable and has 1 member.\n",
        )
        kept = run_command("groups", "delete", "busy", *where)
        assert (kept.exit_code, kept.stderr) == (
            1,
            "headwater: The group busy still has members.\n",
        )
