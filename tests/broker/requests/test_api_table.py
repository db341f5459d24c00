"""The table of APIs, whose handlers are imported when they are first asked for."""

import pkgutil

import pytest

from headwater.broker import handlers
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.api_table import API_TABLE, SERVED
from headwater.wire.api_keys import INTER_BROKER_APIS, ApiKey


@pytest.mark.parametrize("api_key", SERVED)
def test_every_api_has_its_handler(api_key: ApiKey) -> None:
    handler = API_TABLE.get(api_key)
    assert handler is not None
    assert handler.api_key is api_key
    assert handler.versions == API_TABLE.versions[api_key]
    assert API_TABLE.get(int(api_key)) is handler


def test_every_handler_is_in_the_table() -> None:
    modules = {module.name.upper() for module in pkgutil.iter_modules(handlers.__path__)}
    assert modules == {api_key.name for api_key in SERVED}


@pytest.mark.parametrize("api_key", [-1, 999, int(ApiKey.ENVELOPE)])
def test_what_is_not_served_has_none(api_key: int) -> None:
    assert API_TABLE.get(api_key) is None


def test_what_clients_are_not_told_of_is_for_brokers_only() -> None:
    for_brokers = {
        api_key
        for api_key in SERVED
        if isinstance(handler := API_TABLE.get(api_key), ApiHandler) and handler.brokers_only
    }
    # But for how a connection becomes a broker's.
    assert for_brokers == INTER_BROKER_APIS - {ApiKey.PROVE_BROKER}
