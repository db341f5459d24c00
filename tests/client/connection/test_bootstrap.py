import pytest

from headwater.base.errors import ErrorCode
from headwater.client.connection.bootstrap import Address, parse_bootstrap
from headwater.client.errors import InvalidAddressError


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost:9092", [("localhost", 9092)]),
        ("broker1.example.com", [("broker1.example.com", 9092)]),
        ("a:1, b:2 ,a:1,", [("a", 1), ("b", 2)]),
        ("[::1]:9093", [("::1", 9093)]),
        ("[fe80::1%eth0]", [("fe80::1%eth0", 9092)]),
        ("::1", [("::1", 9092)]),
        ("PLAINTEXT://10.0.0.1:19092", [("10.0.0.1", 19092)]),
        ("plaintext://h", [("h", 9092)]),
    ],
)
def test_addresses(text: str, addresses: list[tuple[str, int]]) -> None:
    assert parse_bootstrap(text) == addresses


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "No bootstrap server is named"),
        (" , ", "No bootstrap server is named"),
        ("host:port", "is not a bootstrap server"),
        ("host:1:2", "is not a bootstrap server"),
        ("http://host:9092", "asks for http, but only PLAINTEXT"),
        ("SSL://host:9093", "asks for SSL, but only PLAINTEXT"),
        ("host:0", "has the port 0"),
        ("host:65536", "has the port 65536"),
        ("a b:9092", "is not a bootstrap server"),
        (":9092", "is not a bootstrap server"),
    ],
)
def test_what_makes_no_sense_is_told(text: str, reason: str) -> None:
    with pytest.raises(InvalidAddressError, match=reason) as refused:
        parse_bootstrap(text)
    assert refused.value.code is ErrorCode.INVALID_CONFIG
    assert str(refused.value).endswith(".")


def test_an_address_is_shown_as_it_is_written() -> None:
    assert str(Address("h", 9092)) == "h:9092"
    assert str(Address("::1", 9092)) == "[::1]:9092"
