"""The file of an export: readable, and refused in a sentence where it is not what was written."""

from __future__ import annotations

import json

import pytest

from headwater.cluster.backup.document import (
    DocumentError,
    MetadataDocument,
    decode_document,
    encode_document,
)
from headwater.cluster.backup.document_check import check_document
from headwater.cluster.node_documents import encode, encode_cluster_id
from headwater.cluster.node_locations import CLUSTER_ID, CLUSTER_SECRET
from headwater.cluster.secret import encode_cluster_secret
from tests.support.async_tests import run_async

_NODES = {
    "/brokers": b"",
    "/brokers/topics": b"",
    "/cluster": b"",
    CLUSTER_ID: encode_cluster_id("a-cluster"),
    CLUSTER_SECRET: encode_cluster_secret(bytes(32)),
}
_TOPIC = {"version": 3, "topic_id": "EOY63WxlTzWsGYM5H1c-_w", "partitions": {"0": [1, 2]}}


def _file(nodes: dict[str, bytes]) -> bytes:
    return encode_document(MetadataDocument(nodes, 3, {"headwater": "0.9.0"}))


def test_people_can_read_it() -> None:
    data = _file({**_NODES, "/brokers/topics/orders": encode(_TOPIC)})
    assert f'  {{"path": "/brokers/topics/orders", "json": {json.dumps(_TOPIC)}}}' in data.decode()
    content = json.loads(data)
    assert (content["format"], content["version"]) == ("headwater-metadata", 1)
    assert len(content["sha256"]) == 64


@pytest.mark.parametrize("data", [b"", b"7", b"\xff\x00", b'{"a": 1}', b'{"a":1,"a":2}', b"[]"])
def test_whatever_a_node_holds_comes_back(data: bytes) -> None:
    document = decode_document(_file({"/config": data}))
    assert document.nodes == {"/config": data}
    assert document.broker_ids_given == 3


def test_what_was_changed_or_cut_off_is_refused() -> None:
    data = _file(_NODES)
    with pytest.raises(DocumentError, match="was changed after it was written"):
        decode_document(data.replace(b"a-cluster", b"b-cluster"))
    for broken in (data[:-20], b"", b"[]", b'{"nodes": []}', b"\xff", b"[" * 100_000):
        with pytest.raises(DocumentError, match="no file that"):
            decode_document(broken)
    with pytest.raises(DocumentError, match="version 2"):
        decode_document(data.replace(b'"version": 1,', b'"version": 2,', 1))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"broker_ids_given": -1}, "broker ids"),
        ({"nodes": [{"path": "/a/b"}]}, "what is above /a/b"),
        ({"nodes": [{"path": "/a"}, {"path": "/a"}]}, "twice"),
        ({"nodes": [{"path": "a"}]}, "not the path"),
        ({"nodes": [{"path": 7}]}, "node 0 has no path"),
        ({"nodes": [7]}, "cannot be read"),
        ({"nodes": [{"path": "/a", "base64": "?"}]}, "no base64"),
        ({"nodes": [{"path": "/a", "json": 7}]}, "wrong form"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, object], reason: str) -> None:
    # Without a checksum, as somebody leaves it who has edited the file.
    content = {**json.loads(_file(_NODES)), **changes}
    del content["sha256"]
    with pytest.raises(DocumentError, match=reason):
        decode_document(json.dumps(content).encode())


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ({"/brokers/topics/orders": b"{}"}, "/brokers/topics/orders"),
        ({"/brokers/topics/or ders": encode(_TOPIC)}, "or ders"),
        ({CLUSTER_SECRET: b"{}"}, "does not hold a secret"),
        ({CLUSTER_ID: b""}, "has no /cluster/id"),
        ({"/controller_epoch": b"x"}, "/controller_epoch"),
        ({"/latest_producer_id_block": b"x"}, "/latest_producer_id_block"),
        ({"/zookeeper": b""}, "no node of a cluster"),
        (
            {
                "/brokers/topics/a": encode(_TOPIC),
                "/brokers/topics/b": encode(_TOPIC),
            },
            "its id is that of a",
        ),
        (
            {
                "/brokers/topics/a": encode(_TOPIC),
                "/brokers/topics/a/partitions": b"",
                "/brokers/topics/a/partitions/0": b"",
                "/brokers/topics/a/partitions/0/state": encode(
                    {"leader": 9, "leader_epoch": 0, "isr": [1], "controller_epoch": 1}
                ),
            },
            "The leader 9 is no replica",
        ),
    ],
)
@run_async
async def test_what_a_broker_would_leave_out_is_refused(
    nodes: dict[str, bytes], reason: str
) -> None:
    with pytest.raises(DocumentError, match=reason):
        await check_document(MetadataDocument({**_NODES, **nodes}))
