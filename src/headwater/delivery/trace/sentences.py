"""What happened, in words for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from headwater.delivery.trace.event import Event, What
from headwater.delivery.trace.lengths import said


def sentence(event: Event) -> str:
    """One line, without time and place of who tells it."""
    return _SENTENCES[event.what](event)


def exactness(event: Event) -> str:
    if event.within_ms is None:
        return "or earlier"
    return f"within {said(event.within_ms)}" if event.within_ms else "exact"


def _created(event: Event) -> str:
    return _joined("created", event.client_id and f"by {event.client_id}")


def _sent(event: Event) -> str:
    return "sent"


def _retried(event: Event) -> str:
    text = _joined("sent again", event.attempt and f"(attempt {event.attempt})")
    return _joined(text, event.details.get("cause"), at=": ")


def _appended(event: Event) -> str:
    details = event.details
    facts = [
        _named(details, "leader epoch", "leader_epoch"),
        _named(details, "producer", "producer_id"),
        _named(details, "sequence", "sequence"),
    ]
    told = ", ".join(fact for fact in facts if fact)
    return _joined(f"appended as {event.place}", told and f"({told})")


def _leader_changed(event: Event) -> str:
    before, now = event.details.get("leader_epoch_before"), event.details.get("leader_epoch")
    return f"{event.host} leads: epoch {before} became {now}"


def _replicated(event: Event) -> str:
    return "replicated: consumers may have it"


def _acknowledged(event: Event) -> str:
    return _joined("acknowledged", event.client_id and f"to {event.client_id}")


def _failed(event: Event) -> str:
    return _joined("its producer gave it up", event.error, at=": ")


def _delivered(event: Event) -> str:
    if event.group is None:
        return f"delivered as {event.place}"
    attempt = f" (retry {event.attempt})" if event.attempt else ""
    return f"shown to {event.group} again{attempt} as {event.place}"


def _dead_letter(event: Event) -> str:
    return _joined(f"dead letter {event.place}", event.group and f"of {event.group}")


def _sent_back(event: Event) -> str:
    return f"sent back as {event.place} (redrive {event.attempt})"


def _fetched(event: Event) -> str:
    return _joined("fetched by", _consumer(event))


def _handled(event: Event) -> str:
    return _joined("handled by", _consumer(event))


def _not_handled(event: Event) -> str:
    return _joined(f"not handled by {_consumer(event)}", event.error, at=": ")


def _sent_on(event: Event) -> str:
    where = f"sent it to {event.place}" if event.place else "gave it up"
    failed = f"attempt {event.attempt} failed" if event.attempt else "it failed"
    return _joined(f"{event.group} {where}: {failed}", event.error, at=": ")


def _committed(event: Event) -> str:
    return f"committed by {_consumer(event)}"


def _passed(event: Event) -> str:
    return f"{event.group} has committed past it"


def _went_back(event: Event) -> str:
    return f"{event.group} went back in front of it"


def _other(event: Event) -> str:
    return _joined(event.text, event.error, at=": ")


_SENTENCES: Final[Mapping[What, Callable[[Event], str]]] = {
    What.CREATED: _created,
    What.SENT: _sent,
    What.RETRIED: _retried,
    What.APPENDED: _appended,
    What.LEADER_CHANGED: _leader_changed,
    What.REPLICATED: _replicated,
    What.ACKNOWLEDGED: _acknowledged,
    What.FAILED: _failed,
    What.TRANSACTION_COMMITTED: lambda _: "its transaction was committed",
    What.TRANSACTION_ABORTED: lambda _: "its transaction was aborted",
    What.DELIVERED: _delivered,
    What.DEAD_LETTER: _dead_letter,
    What.SENT_BACK: _sent_back,
    What.FETCHED: _fetched,
    What.HANDLED: _handled,
    What.NOT_HANDLED: _not_handled,
    What.SENT_ON: _sent_on,
    What.COMMITTED: _committed,
    What.PASSED: _passed,
    What.WENT_BACK: _went_back,
    What.OTHER: _other,
}


def _consumer(event: Event) -> str:
    attempt = f", attempt {event.attempt}" if event.attempt and event.attempt > 1 else ""
    who = event.group or event.client_id or "a consumer"
    return f"{who} ({event.client_id}{attempt})" if event.client_id and event.group else who


def _named(details: Mapping[str, object], name: str, key: str) -> str:
    return "" if details.get(key) is None else f"{name} {details[key]}"


def _joined(text: str, more: object, at: str = " ") -> str:
    """The text, and what there is to say more."""
    return f"{text}{at}{more}" if more else text
