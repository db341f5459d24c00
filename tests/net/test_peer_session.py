import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode
from headwater.net.peer_errors import UnsupportedVersionError
from headwater.net.peer_session import PeerSession
from headwater.wire.api_keys import ApiKey, VersionRange
from headwater.wire.cluster_messages.publish_audit import PublishAuditRequest
from headwater.wire.cluster_messages.update_image import UpdateImageRequest
from headwater.wire.codec import MalformedMessageError
from headwater.wire.frames import encode_response, read_request_header
from headwater.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from headwater.wire.messages.metadata import MetadataRequest, MetadataResponse

METADATA = MetadataRequest.VERSIONS


def _session(lowest: int = METADATA.lowest, highest: int = METADATA.highest) -> PeerSession[str]:
    session: PeerSession[str] = PeerSession("peer:1", "me")
    session.versions = {ApiKey.METADATA: VersionRange(lowest, highest)}
    return session


def _frame(parts: list[object]) -> memoryview:
    return memoryview(bytearray(b"".join(parts)))[4:]  # type: ignore[arg-type]


@given(lowest=st.integers(-5, 40), extent=st.integers(0, 40))
def test_the_highest_common_version_is_chosen(lowest: int, extent: int) -> None:
    session = _session(lowest, lowest + extent)
    common = [
        version
        for version in range(METADATA.lowest, METADATA.highest + 1)
        if lowest <= version <= lowest + extent
    ]
    if common:
        assert session.choose_version(MetadataRequest()) == common[-1]
        assert session.choose_version(MetadataRequest(), common[0]) == common[0]
    else:
        with pytest.raises(UnsupportedVersionError, match="METADATA"):
            session.choose_version(MetadataRequest())
    with pytest.raises(UnsupportedVersionError):
        session.choose_version(MetadataRequest(), METADATA.highest + 1)


def test_what_is_for_brokers_alone_is_asked_of_those_that_serve_it() -> None:
    session = _session()
    # Until it is told, as in front of the proof.
    assert session.choose_version(PublishAuditRequest()) == 0
    session.learn_inter_broker_versions({ApiKey.UPDATE_IMAGE: VersionRange(0, 0)})
    assert session.choose_version(UpdateImageRequest()) == 0
    with pytest.raises(UnsupportedVersionError, match="does not serve PUBLISH_AUDIT"):
        session.choose_version(PublishAuditRequest())


def test_an_api_that_the_peer_lacks_is_an_error_with_its_name() -> None:
    with pytest.raises(UnsupportedVersionError, match=r"peer:1 does not serve API_VERSIONS"):
        _session().choose_version(ApiVersionsRequest())


@given(order=st.permutations(range(6)))
def test_every_answer_finds_its_waiter(order: list[int]) -> None:
    session = _session()
    ids = {}
    for number in order:
        parts = session.request(MetadataRequest(), 9, f"waiter {number}")
        header = read_request_header(_frame(list(parts)))
        assert (header.api_key, header.api_version, header.client_id) == (3, 9, "me")
        ids[number] = header.correlation_id
    assert len(set(ids.values())) == 6
    for number in range(6):
        sent = MetadataResponse(cluster_id=f"cluster {number}")
        answer = session.response(_frame(list(encode_response(3, 9, ids[number], sent))))
        assert answer.waiter == f"waiter {number}"
        message = answer.read()
        assert isinstance(message, MetadataResponse)
        assert message.cluster_id == f"cluster {number}"
    assert session.pending_count == 0


def test_correlation_ids_begin_again_before_they_overflow() -> None:
    session = _session()
    session._next_correlation_id = 2**31 - 1
    ids = [
        read_request_header(_frame(list(session.request(MetadataRequest(), 9, "x")))).correlation_id
        for _ in range(2)
    ]
    assert ids == [2**31 - 1, 0]


@pytest.mark.parametrize("data", [b"", b"\0\0\0", b"\0\0\0\x07abc"])
def test_an_answer_that_nobody_asked_for_is_malformed(data: bytes) -> None:
    session = _session()
    session.request(MetadataRequest(), 9, "x")
    with pytest.raises(MalformedMessageError):
        session.response(memoryview(data))


def test_a_request_without_an_answer_waits_for_none() -> None:
    session = _session()
    session.request(MetadataRequest(), 9, None)
    assert session.pending_count == 0
    session.request(MetadataRequest(), 9, "x")
    assert session.take_waiters() == ["x"]
    assert session.pending_count == 0


def test_a_peer_that_does_not_know_our_version_is_asked_again_in_one_that_it_knows() -> None:
    session: PeerSession[str] = PeerSession("peer:1", "me")
    request, version = session.first_versions_request("software", "1.0")
    assert version == ApiVersionsRequest.VERSIONS.highest
    parts = session.request(request, version, "x")
    header = read_request_header(_frame(list(parts)))
    refusal = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=2)],
    )
    frame = _frame(list(encode_response(18, 0, header.correlation_id, refusal)))
    response = session.response(frame).read()
    assert isinstance(response, ApiVersionsResponse)
    assert session.learn_versions(response) == 2
    assert session.versions == {}
    accepted = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=ApiKey.METADATA, min_version=1, max_version=5)]
    )
    assert session.learn_versions(accepted) is None
    assert session.versions == {ApiKey.METADATA: VersionRange(1, 5)}


def test_any_other_error_ends_the_negotiation() -> None:
    response = ApiVersionsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    with pytest.raises(UnsupportedVersionError, match="does not say"):
        _session().learn_versions(response)
