"""All assignors that `partition.assignment.strategy` can name: the client's own and the user's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from headwater.base.setting import SettingError
from headwater.client.assignors.assignor import Assignor, RebalanceProtocol
from headwater.client.assignors.cooperative_sticky_assignor import CooperativeStickyAssignor
from headwater.client.assignors.range_assignor import RangeAssignor
from headwater.client.assignors.round_robin_assignor import RoundRobinAssignor
from headwater.client.assignors.sticky_assignor import StickyAssignor

_KNOWN: Final[dict[str, Callable[[], Assignor]]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
#: Configurations written for Java's consumer name its classes.
_JAVA_PACKAGE: Final = "org.apache.kafka.clients.consumer."
_JAVA_CLASSES: Final = {
    f"{_JAVA_PACKAGE}{class_name}": name
    for class_name, name in (
        ("RangeAssignor", "range"),
        ("RoundRobinAssignor", "roundrobin"),
        ("StickyAssignor", "sticky"),
        ("CooperativeStickyAssignor", "cooperative-sticky"),
    )
}


def make_assignors(entries: Iterable[object]) -> list[Assignor]:
    """An assignor for each: a name, a class of Java's, or a class or an object of the user's."""
    if isinstance(entries, str):
        entries = [name.strip() for name in entries.split(",")]
    assignors = [_make(entry) for entry in entries]
    if not assignors:
        raise SettingError("The setting partition.assignment.strategy names no assignor.")
    names = [assignor.name for assignor in assignors]
    for name in names:
        if names.count(name) > 1:
            raise SettingError(f"The setting partition.assignment.strategy has {name!r} twice.")
    return assignors


def common_protocol(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """The most that all of them can do."""
    return min(assignor.protocol for assignor in assignors)


def _make(entry: object) -> Assignor:
    if isinstance(entry, str):
        make = _KNOWN.get(_JAVA_CLASSES.get(entry, entry))
        if make is None:
            raise SettingError(
                f"There is no assignor {entry!r}: partition.assignment.strategy takes "
                f"{', '.join(_KNOWN)}, or an assignor of your own (the class or an object of it)."
            )
        return make()
    assignor = entry() if isinstance(entry, type) else entry
    if not isinstance(assignor, Assignor):
        raise SettingError(
            f"{type(assignor).__name__} is not an assignor: it needs name, protocol, "
            "subscription_user_data, assign and on_assignment. One that derives from "
            "PlainAssignor needs only name and assign."
        )
    return assignor
