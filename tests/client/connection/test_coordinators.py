"""Finding coordinators, and asking them, on brokers that answer as they are told."""

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.admin.coordinator_requests import ask_coordinators
from headwater.client.admin.outcomes import Outcomes, require_all
from headwater.client.connection.coordinators import CoordinatorKind, find_coordinators
from headwater.client.errors import DeadlineError, refusal
from headwater.wire.api_keys import ApiKey
from tests.support.async_tests import run_async
from tests.support.fakes.peers.brokers import FakeBrokers
from tests.support.fakes.peers.coordinators import connection_to, place_coordinators

GROUP = CoordinatorKind.GROUP


@run_async
async def test_all_are_looked_up_at_once() -> None:
    async with FakeBrokers(broker_count=2) as cluster:
        place_coordinators(cluster, {"a": 0, "b": 1, "c": -1, "d": 9})
        async with connection_to(cluster) as connection:
            found = await find_coordinators(connection, GROUP, ["a", "b", "c", "d"])
        assert (found["a"], found["b"]) == (0, 1)
        for key, reason in (("c", "Group 'c'"), ("d", "broker 9, whose address")):
            error = found[key]
            assert isinstance(error, KafkaError)
            assert error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert error.retriable
            assert reason in str(error)
        [request] = cluster.requests(ApiKey.FIND_COORDINATOR)
        assert (request.key_type, request.coordinator_keys) == (0, ["a", "b", "c", "d"])


@run_async
async def test_an_older_broker_is_asked_about_one_at_a_time() -> None:
    async with FakeBrokers(broker_count=2) as cluster:
        cluster.limit_version(ApiKey.FIND_COORDINATOR, 3)
        place_coordinators(cluster, {"a": 0, "b": 1})
        async with connection_to(cluster) as connection:
            found = await find_coordinators(connection, CoordinatorKind.TRANSACTION, ["a", "b"])
        assert found == {"a": 0, "b": 1}
        asked = [(it.key_type, it.key) for it in cluster.requests(ApiKey.FIND_COORDINATOR)]
        assert asked == [(1, "a"), (1, "b")]


@run_async
async def test_only_what_is_open_is_asked_again_until_a_coordinator_answers() -> None:
    async with FakeBrokers(broker_count=2) as cluster:
        owners = {"steady": 0, "moving": 0, "late": -1}
        place_coordinators(cluster, owners)
        asked: list[tuple[int, list[str]]] = []

        async with connection_to(cluster) as connection:

            async def ask(broker_id: int, keys: list[str]) -> Outcomes[str, int]:
                asked.append((broker_id, keys))
                outcomes: Outcomes[str, int] = dict.fromkeys(keys, broker_id)
                if broker_id == 0 and "moving" in keys:
                    owners.update(moving=1, late=1)
                    outcomes["moving"] = refusal(ErrorCode.NOT_COORDINATOR, None, "moving")
                elif len(asked) == 2:
                    outcomes["late"] = refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, None, "late")
                return outcomes

            found = await ask_coordinators(connection, GROUP, list(owners), ask, "Asking")
        assert require_all(found) == {"steady": 0, "moving": 1, "late": 1}
        assert asked == [(0, ["steady", "moving"]), (1, ["moving", "late"]), (1, ["late"])]


@run_async
async def test_a_coordinator_that_never_comes_is_told_with_the_reason() -> None:
    async with FakeBrokers() as cluster:
        place_coordinators(cluster, {"a": -1})
        async with connection_to(cluster, timeout_s=0.1) as connection:

            async def ask(broker_id: int, keys: list[str]) -> Outcomes[str, None]:
                raise AssertionError("nobody coordinates it")

            found = await ask_coordinators(connection, GROUP, ["a"], ask, "Asking")
        error = found["a"]
        assert isinstance(error, DeadlineError)
        assert str(error) == (
            "Asking did not succeed within 0.1 s: Group 'a': The coordinator is not available."
        )
