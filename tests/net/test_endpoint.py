import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.net.endpoint import Endpoint, join_address, parse_endpoints, split_address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PLAINTEXT://10.0.0.1:9092", [Endpoint("PLAINTEXT", "10.0.0.1", 9092)]),
        ("localhost:9092", [Endpoint("PLAINTEXT", "localhost", 9092)]),
        (":9092", [Endpoint("PLAINTEXT", "", 9092)]),
        ("[::1]:0", [Endpoint("PLAINTEXT", "::1", 0)]),
        ("internal://[::]:1, ,:2,", [Endpoint("INTERNAL", "::", 1), Endpoint("PLAINTEXT", "", 2)]),
        ("A://:1,B://h:2", [Endpoint("A", "", 1), Endpoint("B", "h", 2)]),
    ],
)
def test_endpoints_are_read(text: str, expected: list[Endpoint]) -> None:
    assert parse_endpoints(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", " , ", "host", "host:", "host:x", "host:65536", "host:-1", "::1:9092", "://h:1", "h:1:2"],
)
def test_what_is_no_endpoint_is_an_error_that_quotes_it(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_endpoints(text)
    assert text.strip(" ,") in str(caught.value)


@given(
    host=st.sampled_from(["", "a.example", "10.1.2.3", "::1", "fe80::1"]),
    port=st.integers(0, 65535),
    name=st.sampled_from(["PLAINTEXT", "INTERNAL"]),
)
def test_an_endpoint_reads_back_from_its_text(host: str, port: int, name: str) -> None:
    endpoint = Endpoint(name, host, port)
    assert parse_endpoints(str(endpoint)) == [endpoint]
    assert split_address(join_address(host, port)) == (host, port)
