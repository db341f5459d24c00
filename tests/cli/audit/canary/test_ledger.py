"""What a canary makes of what comes back: compared with a log that loses and doubles on purpose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cli.audit.canary import ledger as ledger_module
from headwater.cli.audit.canary.ledger import BrokerFigures, CanaryLedger

BROKER = 7


def only(ledger: CanaryLedger, now_s: float = 0.0, late_s: float = 10.0) -> BrokerFigures:
    [figures] = ledger.figures(now_s, late_s)
    return figures


def send(ledger: CanaryLedger, now_s: float = 0.0) -> int:
    number = ledger.sending(0, BROKER, now_s)
    assert number is not None
    return number


#: What a log does with a record: writes it, twice, or acknowledges and forgets it; what the
#: producer hears: an acknowledgement now, after it was read, or that it failed; and a reading.
ACTIONS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["written", "twice", "forgotten"]),
            st.sampled_from(["now", "later", "failed"]),
        ),
        st.just(("read", "")),
        st.just(("tell", "")),
        st.just(("again", "")),
    ),
    max_size=60,
)


@given(ACTIONS)
def test_what_is_told_is_what_happened(actions: list[tuple[str, str]]) -> None:
    ledger = CanaryLedger()
    ledger.knows(BROKER)
    log: list[int | None] = []
    told_later: list[tuple[int, int]] = []
    position = 0
    acknowledged: dict[int, int] = {}
    failed: set[int] = set()
    sent = 0
    for action, told in [*actions, ("tell", ""), ("read", "")]:
        if action == "read":
            for offset in range(position, len(log)):
                number = log[offset]
                if number is not None:
                    ledger.came(0, offset, number, 0.0)
            position = len(log)
            ledger.passed(0, position)
        elif action == "again":
            position = max(0, position - 3)
            ledger.passed(0, position)
        elif action == "tell":
            for number, offset in told_later:
                ledger.acknowledged(0, number, offset)
                acknowledged[number] = offset
            told_later.clear()
        else:
            number = send(ledger)
            sent += 1
            offset = len(log)
            log.append(None if action == "forgotten" else number)
            if action == "twice":
                log.append(number)
            if told == "failed":
                ledger.failed(0, number)
                failed.add(number)
            elif told == "later":
                told_later.append((number, offset))
            else:
                ledger.acknowledged(0, number, offset)
                acknowledged[number] = offset
        figures = only(ledger)
        read = set(log[:position]) - {None}
        assert figures.lost <= len(acknowledged.keys() - set(log)), "late is not lost"
        assert figures.received >= len(read)
    figures = only(ledger)
    there = [number for number in log if number is not None]
    assert figures.sent == sent
    assert figures.received == len(set(there))
    assert figures.doubled == len(there) - len(set(there))
    assert figures.lost == len(acknowledged.keys() - set(there))
    assert figures.failed == len(failed)
    assert figures.outstanding == 0
    assert ledger.has_wrong == bool(figures.lost or figures.doubled)


def test_a_record_is_late_for_as_long_as_it_takes_and_then_comes() -> None:
    ledger = CanaryLedger()
    number = send(ledger)
    ledger.acknowledged(0, number, 40)
    ledger.passed(0, 40)
    figures = only(ledger, now_s=100_000.0)
    assert (figures.late, figures.outstanding, figures.lost) == (1, 1, 0)
    ledger.came(0, 40, number, 100_000.0)
    ledger.passed(0, 41)
    figures = only(ledger, now_s=100_000.0)
    assert (figures.received, figures.late, figures.lost) == (1, 0, 0)
    assert figures.p50_ms == figures.p99_ms == 100_000_000.0


def test_a_record_that_was_taken_for_lost_and_comes_is_not_lost() -> None:
    ledger = CanaryLedger()
    number = send(ledger)
    ledger.acknowledged(0, number, 0)
    ledger.passed(0, 1)
    assert only(ledger).lost == 1
    assert ledger.has_wrong
    ledger.came(0, 0, number, 1.0)
    assert (only(ledger).lost, only(ledger).received) == (0, 1)
    assert not ledger.has_wrong


def test_records_of_others_do_not_count() -> None:
    ledger = CanaryLedger()
    send(ledger)
    ledger.came(0, 3, 5, 1.0)
    ledger.came(0, 4, -1, 1.0)
    ledger.came(9, 4, 0, 1.0)
    assert only(ledger).received == 0


def test_no_more_is_sent_than_can_be_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "OUTSTANDING_MAX", 3)
    monkeypatch.setattr(ledger_module, "REMEMBERED_MAX", 2)
    ledger = CanaryLedger()
    numbers = [send(ledger) for _ in range(3)]
    assert ledger.sending(0, BROKER, 0.0) is None
    for number in numbers:
        ledger.came(0, number, number, 1.0)
    ledger.came(0, 9, numbers[0], 1.0)  # Longer ago than is remembered.
    ledger.came(0, 9, numbers[2], 1.0)
    figures = only(ledger)
    assert (figures.skipped, figures.received, figures.doubled) == (1, 3, 1)
    assert ledger.sending(0, BROKER, 0.0) == 3


def test_percentiles_are_of_round_trips() -> None:
    ledger = CanaryLedger()
    for number in range(100):
        send(ledger)
        ledger.came(0, number, number, (number + 1) / 1000)
    assert (only(ledger).p50_ms, only(ledger).p99_ms) == (50.0, 100.0)
