"""ApiVersions: what clients are told first, and those that have reached the wrong broker."""

from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker


def versions_request(cluster_id: str | None = None, node_id: int = -1) -> ApiVersionsRequest:
    return ApiVersionsRequest(
        client_software_name="test",
        client_software_version="1.0",
        cluster_id=cluster_id,
        node_id=node_id,
    )


@pytest.mark.parametrize("version", range(6))
def test_every_version_tells_the_same(tmp_path: Path, version: int) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        answer = await broker.ask(versions_request(), ApiVersionsResponse, version=version)
        assert answer.error_code == 0
        offered = {row.api_key: row.max_version for row in answer.api_keys}
        assert offered[ApiKey.API_VERSIONS] == 5
        assert offered[ApiKey.TXN_OFFSET_COMMIT] == 6
        features = {row.name: row.max_version_level for row in answer.finalized_features}
        known = {"group.version": 1, "transaction.version": 2}
        assert features == (known if version >= 3 else {})
        # The versions that they may have begin with 0, which older clients cannot read.
        supported = {row.name: row.max_version for row in answer.supported_features}
        assert supported == (known if version >= 4 else {})

    run_with_broker(tmp_path, scenario)


def test_a_client_that_knows_whom_it_wants(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        cluster_id, node_id = broker.context.cluster_id, broker.context.node_id
        rebootstrap, invalid = ErrorCode.REBOOTSTRAP_REQUIRED, ErrorCode.INVALID_REQUEST
        for wanted, code in {
            (cluster_id, node_id): ErrorCode.NONE,
            (cluster_id, node_id + 1): rebootstrap,
            ("another", node_id): rebootstrap,
            ("", node_id): rebootstrap,
            # Half an identity is none.
            (cluster_id, -1): invalid,
            (None, node_id): invalid,
        }.items():
            answer = await broker.ask(versions_request(*wanted), ApiVersionsResponse)
            assert answer.error_code == code, wanted
            # Whoever is sent away is told nothing else.
            assert bool(answer.api_keys) == (code == 0), wanted
            assert bool(answer.finalized_features) == (code == 0), wanted

    run_with_broker(tmp_path, scenario)


def test_software_must_have_a_name(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        for version, code in (
            (2, 0),
            (3, ErrorCode.INVALID_REQUEST),
            (5, ErrorCode.INVALID_REQUEST),
        ):
            answer = await broker.ask(ApiVersionsRequest(), ApiVersionsResponse, version=version)
            assert answer.error_code == code

    run_with_broker(tmp_path, scenario)
