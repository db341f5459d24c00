"""The table of APIs agrees with the generated classes, and with kio's list."""

import importlib
import pkgutil

import pytest
from kio.schema.index import api_key_map

import headwater.wire.messages
from headwater.wire.api_keys import (
    FLEXIBLE_SINCE,
    PRIVATE_APIS,
    SCHEMA_VERSIONS,
    ApiKey,
    VersionRange,
    request_class,
    response_class,
)
from headwater.wire.schema import NEVER_FLEXIBLE, Message


@pytest.mark.parametrize("key", ApiKey, ids=lambda key: str(key.name))
def test_each_row_describes_the_classes_of_its_api(key: ApiKey) -> None:
    for message_class in (request_class(key), response_class(key)):
        assert ApiKey(message_class.API_KEY) is key
        assert SCHEMA_VERSIONS[key] == message_class.VERSIONS
        assert FLEXIBLE_SINCE[key] == message_class.FLEXIBLE_SINCE
    assert (key in PRIVATE_APIS) or api_key_map[key] == key.name.lower()


def test_each_generated_api_has_a_row() -> None:
    keys = set()
    for module_info in pkgutil.iter_modules(headwater.wire.messages.__path__):
        module = importlib.import_module(f"headwater.wire.messages.{module_info.name}")
        classes = [value for value in vars(module).values() if isinstance(value, type)]
        keys |= {
            value.API_KEY
            for value in classes
            if issubclass(value, Message) and value.__module__ == module.__name__
        }
    assert keys == {int(key) for key in ApiKey if key not in PRIVATE_APIS} | {-1}


def test_a_plain_number_is_enough() -> None:
    assert ApiKey(3) is ApiKey.METADATA
    assert SCHEMA_VERSIONS[ApiKey(18)] == VersionRange(0, 5)
    assert request_class(3).__name__ == "MetadataRequest"
    assert FLEXIBLE_SINCE[ApiKey.SASL_HANDSHAKE] == NEVER_FLEXIBLE


def test_an_unknown_key() -> None:
    with pytest.raises(ValueError, match="1234"):
        request_class(1234)


def test_a_range_contains_versions() -> None:
    assert 2 in VersionRange(2, 3)
    assert 3 in VersionRange(2, 3)
    assert 1 not in VersionRange(2, 3)
    assert 4 not in VersionRange(2, 3)
