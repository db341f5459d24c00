"""Clients in an environment of somebody else's, made with the arguments that users have."""

import random

import pytest

from headwater import AsyncConsumer, AsyncProducer, Consumer, Producer
from headwater.base.clocks import ManualClock
from headwater.base.settings import SettingError
from headwater.client.environment import ClientEnvironment, HasEnvironment, in_environment

CLIENTS = [AsyncConsumer, AsyncProducer, Consumer, Producer]


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_class_in_an_environment_is_the_same_but_for_that(kind: type[HasEnvironment]) -> None:
    environment = ClientEnvironment(ManualClock(), generator=random.Random(1))
    placed = in_environment(kind, environment)
    assert issubclass(placed, kind)
    assert placed.__name__ == kind.__name__
    assert placed._given_environment is environment
    assert kind._given_environment is None


def test_clients_of_an_environment_share_it_and_others_have_their_own() -> None:
    environment = ClientEnvironment(ManualClock())
    placed = in_environment(AsyncProducer, environment)
    assert placed()._environment is placed(linger_ms=7)._environment is environment
    first, second = AsyncProducer(), AsyncProducer()
    assert first._environment.generator is not second._environment.generator


def test_arguments_are_checked_there_as_everywhere() -> None:
    placed = in_environment(AsyncProducer, ClientEnvironment())
    with pytest.raises(SettingError, match="did you mean linger_ms"):
        placed(liger_ms=7)  # type: ignore[call-arg]
