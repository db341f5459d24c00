import asyncio
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from headwater.net.limits import ConnectionCounters, ConnectionLimits
from headwater.net.receive_budget import ReceiveBudget
from tests.support.fakes.peers.transports import turns


class _Waiter:
    """Wants to hold `size` bytes, and stands in line until it does."""

    def __init__(self, budget: ReceiveBudget, size: int, done: Callable[["_Waiter"], None]) -> None:
        self.budget = budget
        self.size = size
        self.done = done
        self.is_holding = False

    def ask(self) -> None:
        if self.budget.take(self.size):
            self.is_holding = True
            self.done(self)
        else:
            self.budget.wait(asyncio.get_running_loop(), self.ask)

    def stop(self) -> None:
        self.is_holding = False
        self.budget.give_back(self.size)


@given(
    bound=st.integers(1, 100),
    sizes=st.lists(st.integers(1, 120), min_size=1, max_size=30),
    data=st.data(),
)
def test_the_sum_stays_within_one_request_of_the_bound_and_all_get_in_in_order(
    bound: int, sizes: list[int], data: st.DataObject
) -> None:
    async def run() -> None:
        budget = ReceiveBudget(bound)
        order: list[_Waiter] = []
        waiters = [_Waiter(budget, size, order.append) for size in sizes]
        for waiter in waiters:
            waiter.ask()
        while len(order) < len(waiters):
            holding = [waiter for waiter in waiters if waiter.is_holding]
            held = sum(waiter.size for waiter in holding)
            assert budget.held_bytes == held
            assert held - max(waiter.size for waiter in holding) < bound
            assert not budget.has_room or not budget.waiting_count
            data.draw(st.sampled_from(holding)).stop()
            await turns(3)
        assert order == waiters

    asyncio.run(run())


def test_a_request_larger_than_the_bound_makes_progress() -> None:
    budget = ReceiveBudget(10)
    assert budget.take(1000)
    assert not budget.take(1)
    budget.give_back(1000)
    assert budget.take(1)


def test_without_a_bound_nobody_waits() -> None:
    budget = ReceiveBudget(-1)
    assert budget.is_open
    assert all(budget.take(2**40) for _ in range(3))
    assert budget.held_bytes == 3 * 2**40


def test_who_comes_later_does_not_overtake_those_who_wait() -> None:
    async def run() -> None:
        budget = ReceiveBudget(10)
        assert budget.take(10)
        order: list[_Waiter] = []
        first = _Waiter(budget, 5, order.append)
        first.ask()
        budget.give_back(10)
        assert not budget.take(1), "there is room, but somebody waits for it"
        await turns()
        assert order == [first]
        assert budget.take(1)

    asyncio.run(run())


def test_raising_the_bound_lets_those_in_who_wait() -> None:
    async def run() -> None:
        limits = ConnectionLimits(queued_bytes_max=10)
        assert limits.budget.take(10)
        order: list[_Waiter] = []
        for _ in range(3):
            _Waiter(limits.budget, 5, order.append).ask()
        limits.queued_bytes_max = 18
        await turns()
        assert len(order) == 2
        limits.queued_bytes_max = -1
        await turns()
        assert len(order) == 3
        assert limits.budget.is_open

    asyncio.run(run())


def test_one_who_is_gone_when_his_turn_comes_holds_up_nobody() -> None:
    async def run() -> None:
        budget = ReceiveBudget(10)
        assert budget.take(10)
        loop = asyncio.get_running_loop()
        for _ in range(3):
            budget.wait(loop, lambda: None)
        order: list[_Waiter] = []
        _Waiter(budget, 5, order.append).ask()
        budget.give_back(10)
        await turns()
        assert len(order) == 1
        assert budget.held_bytes == 5

    asyncio.run(run())


class _Counted:
    def __init__(self, bytes_in: int, bytes_out: int, requests: int) -> None:
        self.bytes_in = bytes_in
        self.bytes_out = bytes_out
        self.requests = requests

    def receiving_bytes(self) -> int:
        return 0

    def grow(self) -> None:
        raise AssertionError("nothing is under way")

    def drop(self, reason: str) -> None:
        raise AssertionError("nothing is under way")


def test_totals_count_open_and_closed_connections() -> None:
    counters = ConnectionCounters()
    first, second = _Counted(1, 20, 300), _Counted(4, 50, 600)
    counters.add(first, "a")
    counters.add(second, "a")
    first.bytes_in += 1000
    assert (counters.bytes_in, counters.bytes_out, counters.requests) == (1005, 70, 900)
    assert (counters.open, counters.open_from("a")) == (2, 2)
    counters.remove(first, "a")
    second.requests += 1
    assert (counters.bytes_in, counters.bytes_out, counters.requests) == (1005, 70, 901)
    assert (counters.open, counters.created, counters.closed) == (1, 2, 1)
    assert counters.open_from("a") == 1
    counters.remove(second, "a")
    assert counters.open_from("a") == 0


def test_connections_are_refused_by_number_and_by_host() -> None:
    limits = ConnectionLimits(
        connections_max=3, connections_max_per_ip=2, connections_max_by_host={"b": 0, "c": 9}
    )
    assert limits.refusal("a") == ""
    assert "0 connections from it" in limits.refusal("b")
    for _ in range(2):
        limits.counters.add(_Counted(0, 0, 0), "a")
    assert "2 connections from it" in limits.refusal("a")
    assert limits.refusal("c") == ""
    limits.counters.add(_Counted(0, 0, 0), "c")
    assert "3 connections already" in limits.refusal("c")
    limits.connections_max = 4
    assert limits.refusal("c") == ""


def test_a_few_connections_from_this_machine_are_accepted_above_the_limits() -> None:
    limits = ConnectionLimits(
        connections_max=1, connections_max_by_host={"127.0.0.1": 0}, connections_reserved=2
    )
    limits.counters.add(_Counted(0, 0, 0), "10.0.0.1")
    for host in ("127.0.0.1", "127.3.2.1", "::1", "::ffff:127.0.0.1"):
        assert limits.refusal(host) and limits.has_reserve(host)
    for host in ("10.0.0.1", "::2", "::ffff:10.0.0.1", "localhost", ""):
        assert not limits.has_reserve(host)
    reserved = [_Counted(0, 0, 0), _Counted(1, 0, 0)]
    for connection in reserved:
        limits.counters.add(connection, "127.0.0.1", is_reserved=True)
    assert not limits.has_reserve("127.0.0.1")
    limits.counters.remove(reserved[0], "127.0.0.1")
    assert limits.has_reserve("127.0.0.1")
