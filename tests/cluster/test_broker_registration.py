"""What a broker registers is what the others read."""

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.broker_registration import load_brokers, register_broker
from headwater.cluster.cluster_identity import prepare_store
from headwater.cluster.image import BrokerInfo, EndpointInfo
from headwater.cluster.node_documents import CorruptNodeError
from tests.support.async_tests import run_async
from tests.support.metadata_stores import open_in_memory

BROKER = BrokerInfo(
    7,
    (
        EndpointInfo("PLAINTEXT", "host.example", 9092),
        EndpointInfo("INTERNAL_1", "::1", 19092),
        EndpointInfo("DIALLED", "", 0),
    ),
    "rack-a",
)


@run_async
async def test_a_registration_is_read_back_and_goes_with_the_session() -> None:
    store = await open_in_memory()
    session, other = store.connect(), store.connect()
    await prepare_store(session)
    registered = await register_broker(session, BROKER, 5)
    bare = await register_broker(other, BrokerInfo(2, ()), 5)
    assert registered == BROKER._replace(broker_epoch=registered.broker_epoch)
    assert bare.broker_epoch > registered.broker_epoch > 0
    assert await load_brokers(other) == {2: bare, 7: registered}
    with pytest.raises(KafkaError) as caught:
        await register_broker(other, BROKER, 6)
    assert caught.value.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    await session.close()
    assert await load_brokers(other) == {2: bare}
    again = await register_broker(other, BROKER, 7)
    assert again.broker_epoch > registered.broker_epoch


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b'{"endpoints":["nonsense"]}'])
@run_async
async def test_a_registration_that_is_none_is_told(data: bytes) -> None:
    session = (await open_in_memory()).connect()
    await prepare_store(session)
    await session.create("/brokers/ids/3", data)
    with pytest.raises(CorruptNodeError, match="/brokers/ids/3"):
        await load_brokers(session)
