"""What a peer or a node of the store says about the cluster is believed only if it can be."""

import asyncio
import logging
import random
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.cluster.image.image import ClusterImage
from headwater.cluster.image.loader import load_image
from headwater.cluster.image.reception import updated
from headwater.cluster.image.update import snapshot
from headwater.cluster.store.metadata_store import MetadataStore
from headwater.cluster.topics.new_topic import NewTopic
from headwater.wire.cluster_messages.update_image import (
    UpdatedBroker,
    UpdatedConfig,
    UpdatedConfigEntry,
    UpdatedEndpoint,
    UpdatedPartition,
    UpdatedTopic,
    UpdateImageRequest,
)
from headwater.wire.codec import MalformedMessageError, decode, encode
from tests.support.async_tests import run_async
from tests.support.brokers.controllers import new_seat, take_seat
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.brokers.metadata_stores import open_in_memory, open_sqlite
from tests.support.tiers import rounds

INT_MAX = 2**31 - 1
ID = uuid.UUID("5c5e5a7e-3c8e-4b3a-9a8e-0d6b8c2f1a11")


def partition(number: int = 0, **values: object) -> UpdatedPartition:
    told = UpdatedPartition(partition=number, leader=0, replicas=[0], isr=[0])
    for name, value in values.items():
        setattr(told, name, value)
    return told


def topic(name: str = "x", *partitions: UpdatedPartition, topic_id: uuid.UUID = ID) -> UpdatedTopic:
    return UpdatedTopic(name=name, topic_id=topic_id, partitions=list(partitions) or [partition()])


def next_snapshot(image: ClusterImage) -> UpdateImageRequest:
    """What the controller would send if nothing had changed."""
    request = snapshot(image)
    request.to_version = image.version + 1
    return request


def adding(*topics: UpdatedTopic) -> Callable[[UpdateImageRequest], None]:
    return lambda request: request.topics.extend(topics)


def setting(**values: object) -> Callable[[UpdateImageRequest], None]:
    def change(request: UpdateImageRequest) -> None:
        for name, value in values.items():
            setattr(request, name, value)

    return change


def adding_broker(**values: object) -> Callable[[UpdateImageRequest], None]:
    def change(request: UpdateImageRequest) -> None:
        broker = UpdatedBroker(broker_id=7, broker_epoch=9)
        for name, value in values.items():
            setattr(broker, name, value)
        request.brokers.append(broker)

    return change


def adding_config(kind: int, name: str, version: int = 0) -> Callable[[UpdateImageRequest], None]:
    told = UpdatedConfig(kind=kind, name=name, version=version, entries=[UpdatedConfigEntry()])
    return lambda request: request.configs.append(told)


def endpoint(host: str = "host", port: int = 9092) -> UpdatedEndpoint:
    return UpdatedEndpoint(listener_name="PLAINTEXT", host=host, port=port)


BAD_IMAGES: dict[str, Callable[[UpdateImageRequest], None]] = {
    "a name that leads out": adding(topic("../../../x")),
    "an absolute name": adding(topic("/tmp/x")),
    "a name with a slash": adding(topic("a/b")),
    "the directory itself": adding(topic(".")),
    "the directory above": adding(topic("..")),
    "no name": adding(topic("")),
    "a name with a newline": adding(topic("a\nb")),
    "a name with a zero": adding(topic("a\0b")),
    "a name that is too long": adding(topic("x" * 250)),
    "a topic twice": adding(topic("x"), topic("x", topic_id=uuid.UUID(int=9))),
    "an id twice": adding(topic("x"), topic("y")),
    "no id": adding(topic("x", topic_id=uuid.UUID(int=0))),
    "no partitions": adding(UpdatedTopic(name="x", topic_id=ID)),
    "a partition that is not the first": adding(topic("x", partition(1))),
    "a partition below zero": adding(topic("x", partition(-1))),
    "a partition far away": adding(topic("x", partition(0), partition(INT_MAX))),
    "a partition twice": adding(topic("x", partition(0), partition(0))),
    "no replicas": adding(topic("x", partition(replicas=[], isr=[]))),
    "a replica twice": adding(topic("x", partition(replicas=[0, 0]))),
    "a replica below zero": adding(topic("x", partition(replicas=[0, -1]))),
    "nobody in sync": adding(topic("x", partition(isr=[]))),
    "in sync twice": adding(topic("x", partition(isr=[0, 0]))),
    "in sync without a replica": adding(topic("x", partition(isr=[0, 1]))),
    "a leader without a replica": adding(topic("x", partition(leader=5))),
    "a leader below none": adding(topic("x", partition(leader=-2))),
    "a leader epoch below zero": adding(topic("x", partition(leader_epoch=-1))),
    "a partition epoch below zero": adding(topic("x", partition(partition_epoch=-5))),
    "added twice": adding(topic("x", partition(replicas=[0, 1], adding=[1, 1]))),
    "added without a replica": adding(topic("x", partition(replicas=[0, 1], adding=[5]))),
    "all are added": adding(topic("x", partition(replicas=[0, 1], adding=[0, 1]))),
    "removed twice": adding(topic("x", partition(replicas=[0, 1], removing=[1, 1]))),
    "removed without a replica": adding(topic("x", partition(replicas=[0, 1], removing=[-1]))),
    "all are removed": adding(topic("x", partition(replicas=[0, 1], removing=[1, 0]))),
    "a throttle below zero": adding(topic("x", partition(throttle=-1))),
    "a controller below zero": setting(controller_id=-1),
    "a version below zero": setting(to_version=-7, controller_epoch=INT_MAX),
    "another cluster": setting(cluster_id="elsewhere"),
    "a broker below zero": adding_broker(broker_id=-3),
    "a broker twice": adding_broker(broker_id=0),
    "a port that is none": adding_broker(endpoints=[endpoint(port=70_000)]),
    "a port below zero": adding_broker(endpoints=[endpoint(port=-1)]),
    "a host with a zero": adding_broker(endpoints=[endpoint("a\0b")]),
    "a host that is too long": adding_broker(endpoints=[endpoint("a" * 300)]),
    "settings of nothing": adding_config(77, "x"),
    "settings of a group without a name": adding_config(32, ""),
    "settings of a topic that cannot be": adding_config(2, "../x"),
    "settings of a broker without a number": adding_config(4, "zero"),
    "settings of a broker in other digits": adding_config(4, "007"),
    "settings of a broker far away": adding_config(4, "99999999999"),
    "settings of a version below none": adding_config(4, "", -2),
    "an unreadable topic that cannot be": setting(unreadable_topics=["../x"]),
}


def files_below(path: Path) -> list[str]:
    return sorted(str(each.relative_to(path)) for each in path.rglob("*"))


def test_a_message_that_cannot_be_true_is_refused_as_a_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "a" / "b" / "c"
    directory.mkdir(parents=True)

    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        member = broker.context.member
        before = member.image
        files = files_below(tmp_path)
        for name, spoil in BAD_IMAGES.items():
            request = next_snapshot(before)
            spoil(request)
            caplog.clear()
            for _ in range(2):
                response = await member.receive(request)
                assert response.error_code == ErrorCode.INVALID_REQUEST, name
            assert member.image is before, name
            assert len(caplog.records) == 1, name
            assert caplog.records[0].exc_info is None
        assert files_below(tmp_path) == files
        # What can be true is followed.
        assert (await member.receive(next_snapshot(before))).error_code == 0

    run_with_broker(directory, scenario)


def test_a_delta_cannot_name_what_the_broker_does_not_know(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        member = broker.context.member
        before = member.image
        known = before.topics["orders"].topic_id
        for told in (
            topic("orders", partition(3), topic_id=known),
            topic("orders", partition(1), topic_id=ID),
            topic("payments", topic_id=known),
        ):
            request = next_snapshot(before)
            request.is_snapshot, request.from_version = False, before.version
            request.topics = [told]
            assert (await member.receive(request)).error_code == ErrorCode.INVALID_REQUEST
        assert member.image is before

    run_with_broker(tmp_path, scenario)


# -- messages at random --------------------------------------------------------------------------

_NUMBERS = (0, 1, 2, 7, -1, -2, 127, INT_MAX, -(2**31))
_TEXTS = (
    "",
    "x",
    "orders",
    "..",
    "../x",
    "a/b",
    "0",
    "-1",
    "a\nb",
    "\0",
    "x" * 300,
    "retention.ms",
)


class MessageMutations:
    """Changes a message here and there, in its fields or in its bytes."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def mutated(self, request: UpdateImageRequest) -> UpdateImageRequest | None:
        """What arrives of it; None if that cannot be read."""
        for _ in range(self._random.choice((1, 1, 2, 4))):
            self._change(request)
        data = bytearray(encode(request, 0))
        if self._random.random() < 0.4:
            for _ in range(self._random.choice((1, 2, 5))):
                data[self._random.randrange(len(data))] = self._random.randrange(256)
        try:
            return decode(UpdateImageRequest, bytes(data), 0)[0]
        except MalformedMessageError:
            return None

    def _change(self, struct: object) -> None:
        """One field of the struct, or of one that is in it."""
        fields = list(struct.FIELDS)  # type: ignore[attr-defined]
        field = self._random.choice(fields)
        value = getattr(struct, field.name)
        if field.array:
            setattr(struct, field.name, self._changed_list(field.kind, value or []))
        elif isinstance(value, bool):
            setattr(struct, field.name, not value)
        elif isinstance(value, int):
            bits = 8 if field.kind == "int8" else 32
            number = self._random.choice(_NUMBERS)
            setattr(struct, field.name, max(-(2 ** (bits - 1)), min(number, 2 ** (bits - 1) - 1)))
        elif isinstance(value, uuid.UUID):
            setattr(struct, field.name, uuid.UUID(int=self._random.choice((0, 1, 2, 3))))
        else:
            setattr(struct, field.name, self._random.choice(_TEXTS))

    def _changed_list(self, kind: object, value: list[object]) -> list[object]:
        draw = self._random.random()
        if not isinstance(kind, str):
            if value and draw < 0.7:
                self._change(self._random.choice(value))
            elif value and draw < 0.8:
                value.append(self._random.choice(value))
            else:
                added = kind()  # type: ignore[operator]
                for _ in range(3):
                    self._change(added)
                value.append(added)
        elif draw < 0.3:
            value = []
        elif kind == "uuid":
            value.append(uuid.UUID(int=self._random.choice((0, 1, 2))))
        elif kind == "string":
            value.append(self._random.choice(_TEXTS))
        else:
            value.append(self._random.choice(_NUMBERS))
        return value


@pytest.mark.parametrize("seed", range(rounds(2, 20)))
def test_messages_that_were_changed_at_random_do_no_harm(
    tmp_path: Path, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "a" / "b" / "c"
    directory.mkdir(parents=True)
    mutations = MessageMutations(seed)

    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        member = broker.context.member
        outcomes: dict[int, int] = {}
        for _ in range(rounds(200, 1000)):
            request = mutations.mutated(next_snapshot(member.image))
            if request is not None:
                response = await member.receive(request)
                outcomes[response.error_code] = outcomes.get(response.error_code, 0) + 1
        assert outcomes[ErrorCode.INVALID_REQUEST] > 20
        assert outcomes[ErrorCode.NONE] > 20

    run_with_broker(directory, scenario, {"controlled.shutdown.enable": "false"})
    assert [record for record in caplog.records if record.exc_info] == []
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
    assert [each.name for each in (tmp_path / "a" / "b").iterdir()] == ["c"]


# -- nodes of the store --------------------------------------------------------------------------

STATE = b'{"controller_epoch":1,"leader":0,"version":1,"leader_epoch":0,"isr":[0]}'
DOCUMENT = (
    b'{"version":3,"topic_id":"%s","partitions":%s,"adding_replicas":{},"removing_replicas":{}}'
)
AN_ID = b"XF5afjyOSzqajg1rjC8aEQ"

BAD_TOPICS: dict[str, bytes] = {
    "no document": b"",
    "a list": b"[]",
    "no id": b'{"version":3,"partitions":{"0":[0]}}',
    "the id zero": DOCUMENT % (b"A" * 22, b'{"0":[0]}'),
    "an id that is none": DOCUMENT % (b"!" * 22, b'{"0":[0]}'),
    "no partitions": DOCUMENT % (AN_ID, b"{}"),
    "a list of partitions": DOCUMENT % (AN_ID, b"[[0]]"),
    "a hole": DOCUMENT % (AN_ID, b'{"0":[0],"2":[0]}'),
    "no replicas": DOCUMENT % (AN_ID, b'{"0":[]}'),
    "a replica twice": DOCUMENT % (AN_ID, b'{"0":[1,1]}'),
    "a replica below zero": DOCUMENT % (AN_ID, b'{"0":[-1]}'),
    "a replica far away": DOCUMENT % (AN_ID, b'{"0":[99999999999]}'),
    "a replica that is no number": DOCUMENT % (AN_ID, b'{"0":["a"]}'),
    "a truth for a replica": DOCUMENT % (AN_ID, b'{"0":[true]}'),
    "lists without an end": b"[" * 100_000,
    "a number without an end": DOCUMENT % (AN_ID, b'{"0":[' + b"9" * 5000 + b"]}"),
}
BAD_STATES: dict[str, bytes] = {
    "no state": b"null",
    "nobody in sync": STATE.replace(b"[0]", b"[]"),
    "in sync twice": STATE.replace(b"[0]", b"[0,0]"),
    "in sync without a replica": STATE.replace(b"[0]", b"[0,5]"),
    "objects in sync": STATE.replace(b"[0]", b"[{}]"),
    "a leader without a replica": STATE.replace(b'"leader":0', b'"leader":5'),
    "a leader that is no number": STATE.replace(b'"leader":0', b'"leader":"0"'),
    "an epoch below zero": STATE.replace(b'"leader_epoch":0', b'"leader_epoch":-1'),
    "an epoch far away": STATE.replace(b'"leader_epoch":0', b'"leader_epoch":9999999999'),
    "an epoch without an end": STATE.replace(b'"leader_epoch":0', b'"leader_epoch":1e999'),
}
BAD_NODES: list[tuple[str, bytes]] = [
    *(("/brokers/topics/bad", data) for data in BAD_TOPICS.values()),
    *(("/brokers/topics/bad/partitions/0/state", data) for data in BAD_STATES.values()),
    ("/brokers/topics/b\u00e4d", DOCUMENT % (AN_ID, b'{"0":[0]}')),
    ("/brokers/topics/b\nd", DOCUMENT % (AN_ID, b'{"0":[0]}')),
    ("/brokers/topics/" + "x" * 250, DOCUMENT % (AN_ID, b'{"0":[0]}')),
    ("/brokers/ids/zero", b'{"endpoints":[]}'),
    ("/brokers/ids/9", b'{"endpoints":["A://b:99999"]}'),
    ("/brokers/unclean/nine", b""),
    ("/config/topics/b\u00e4d", b'{"version":1,"config":{}}'),
    ("/config/topics/<default>", b'{"version":1,"config":{}}'),
    ("/config/topics/bad", b'{"version":1,"config":{"a":"\\ud800"}}'),
    ("/config/topics/bad", b"\xff"),
    ("/config/topics/bad", b'{"config":{"a":1}}'),
    ("/config/topics/bad", b'{"config":[]}'),
    ("/config/brokers/zero", b'{"version":1,"config":{}}'),
    ("/config/brokers/99999999999", b'{"version":1,"config":{}}'),
    ("/admin/delete_topics/..x\n", b""),
]


async def put(store: MetadataStore, path: str, data: bytes) -> None:
    if await store.exists(path) is None:
        await store.create(path, data)
    else:
        await store.set(path, data)


@pytest.mark.parametrize(("path", "data"), BAD_NODES)
@run_async
async def test_a_node_that_cannot_be_read_is_left_out_and_the_rest_loads(
    path: str, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    store = await open_in_memory()
    session = store.connect()
    seat = await take_seat(session)
    await seat.controller.create_topics([NewTopic("good"), NewTopic("bad")])
    await put(session, path, data)
    await session.close()
    caplog.clear()
    controller = (await take_seat(store.connect())).controller
    assert "good" in controller.image.topics
    assert set(controller.image.topics) | controller.image.unreadable_topics == {"good", "bad"}
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    # Whoever starts reads some nodes more than once, but says nothing of other ones.
    assert all(path in line for line in lines)
    assert lines or path.startswith("/admin/")
    assert [record for record in caplog.records if record.exc_info] == []
    # Whatever was let in, every broker takes it.
    change = updated(ClusterImage(), snapshot(controller.image))
    assert change.image.unreadable_topics == controller.image.unreadable_topics
    await controller.close()
    await store.close()


@run_async
async def test_a_topic_that_cannot_be_read_is_neither_made_anew_nor_deleted() -> None:
    store = await open_in_memory()
    session = store.connect()
    seat = await take_seat(session)
    await seat.controller.create_topics([NewTopic("good"), NewTopic("bad")])
    told = updated(ClusterImage(), snapshot(seat.controller.image)).image
    good = (await session.get("/brokers/topics/bad")).data
    await session.set("/brokers/topics/bad", b"{")
    await session.create("/admin/delete_topics/bad", b"")
    await session.close()
    second = store.connect()
    controller = (await new_seat(second)).controller
    await controller.start()
    assert controller.image.unreadable_topics == {"bad"}
    answers = await controller.create_topics([NewTopic("bad")])
    assert getattr(answers["bad"], "code", None) == ErrorCode.TOPIC_ALREADY_EXISTS
    # A broker that knew it goes on with what it knew.
    change = updated(told, snapshot(controller.image))
    assert change.deleted_topics == ()
    assert change.image.topics["bad"] == told.topics["bad"]
    # It was to be deleted; that is not forgotten, but waits until it can be read.
    assert await second.exists("/admin/delete_topics/bad") is not None
    await controller.close()
    await second.set("/brokers/topics/bad", good)
    await second.close()
    last = store.connect()
    controller = (await take_seat(last)).controller
    assert controller.image.unreadable_topics == frozenset()
    await controller.close()
    await store.close()


def test_the_log_of_a_topic_that_cannot_be_read_waits_for_its_repair(tmp_path: Path) -> None:
    path = "/brokers/topics/orders/partitions/0/state"
    good: list[bytes] = []

    async def write(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        broker.append("orders", 1, 2, 3)

    async def look(broker: HandlerBroker) -> None:
        assert broker.context.partitions.find("orders", 0) is None
        await broker.create_topic("others")

    async def read(broker: HandlerBroker) -> None:
        assert broker.context.partitions.get("orders", 0).log.log_end_offset == 3

    async def spoil() -> None:
        store = await open_sqlite(tmp_path)
        session = store.connect()
        good.append((await session.get(path)).data)
        await session.set(path, b"{}")
        await store.close()

    async def repair() -> None:
        store = await open_sqlite(tmp_path)
        await store.connect().set(path, good[0])
        await store.close()

    run_with_broker(tmp_path, write)
    asyncio.run(spoil())
    run_with_broker(tmp_path, look)
    assert (tmp_path / str(TopicPartition("orders", 0))).is_dir()
    asyncio.run(repair())
    run_with_broker(tmp_path, read)


@pytest.mark.parametrize("seed", range(rounds(2, 20)))
@run_async
async def test_nodes_that_were_changed_at_random_leave_the_rest_readable(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    source = random.Random(seed)
    store = await open_in_memory()
    session = store.connect()
    seat = await take_seat(session)
    names = [f"topic-{number}" for number in range(5)]
    configs = {"retention.ms": "1000"}
    await seat.controller.create_topics([NewTopic(name, 2, configs=configs) for name in names])
    await seat.controller.close()
    paths = ["/brokers/ids/0", "/controller"]
    for name in names[1:]:
        paths += [f"/brokers/topics/{name}", f"/config/topics/{name}"]
        paths += [f"/brokers/topics/{name}/partitions/{number}/state" for number in range(2)]
    good = {path: (await session.get(path)).data for path in paths}
    pieces = (b"0", b"-1", b"[]", b"{}", b"null", b"true", b'"x"', b"1e999", b"9" * 30, b"\xff")
    for _ in range(rounds(300, 3000)):
        path = source.choice(paths)
        data = bytearray(good[path])
        for _ in range(source.choice((1, 1, 2, 5))):
            start = source.randrange(len(data) + 1)
            data[start : start + source.choice((0, 1, 2, 10))] = source.choice(pieces)
        await session.set(path, bytes(data))
        image = await load_image(session)
        assert "topic-0" in image.topics
        assert set(image.topics) | image.unreadable_topics == set(names)
        request = snapshot(image)
        request.controller_id = 0
        arrived, _ = decode(UpdateImageRequest, encode(request, 0), 0)
        assert set(updated(ClusterImage(), arrived).image.topics) == set(image.topics)
        if source.random() < 0.5:
            await session.set(path, good[path])
    assert [record for record in caplog.records if record.exc_info] == []
    await store.close()
