"""Reads all that is known of one message, from wherever it lies, and has it told.

    the record        one fetch at its offset, with the header of its batch
    its family        retry topics, dead-letter topics: records that name it as their origin
    __audit           when each was appended, replicated, and passed by each group
    __trace           what clients wrote
    groups            where they are now, for what is not published yet
    delays            what still waits

Each is read from the message's own time on and within a bound, so that one message is found as
quickly in ten million as in ten; what was left out is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from headwater.base.counted import counted
from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.message_id import MessageId
from headwater.client.admin import DelayedMessage, DelayedOperations, GroupOperations
from headwater.client.admin.group_offsets import GroupOffsetOperations
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.tracing.trace_context import context_of
from headwater.delivery.trace.audit_reader import AuditRows, read_audit
from headwater.delivery.trace.batch_reader import BatchReader
from headwater.delivery.trace.family_search import find_family
from headwater.delivery.trace.lengths import said, shown_moment
from headwater.delivery.trace.place_reader import NoSuchRecordError, PlaceReader
from headwater.delivery.trace.station import Station, TransactionState
from headwater.delivery.trace.story import tell
from headwater.delivery.trace.timeline import Timeline
from headwater.delivery.trace.written_reader import WrittenReader, WrittenSteps
from headwater.wire.delayed.delayed_batch import NEVER_MS
from headwater.wire.records import Record

#: So many groups are asked where they are.
_GROUPS_MAX: Final = 200
#: What brokers know is published once a minute, and somewhat later.
_PUBLISHED_WITHIN_MS: Final = 150_000


@dataclass(slots=True)
class Found:
    """What is known of a message."""

    #: What its producer was told; None of a trace whose message nobody knows.
    id: MessageId | None
    timeline: Timeline
    #: Where it lies, the first place first; empty if it still waits.
    stations: Sequence[Station] = ()
    waiting: DelayedMessage | None = None
    trace_ids: Sequence[str] = ()


@dataclass(slots=True)
class _Groups:
    """Where groups are in the partitions of stations."""

    committed: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)

    def of(self, partition: TopicPartition) -> dict[str, int]:
        return {
            group: offsets[partition]
            for group, offsets in sorted(self.committed.items())
            if partition in offsets
        }


class Investigation:
    """Of messages of one cluster, whose connection is somebody else's to close."""

    def __init__(self, connection: ClusterConnection, now_ms: int) -> None:
        self._connection = connection
        self._now_ms = now_ms
        self._reader = BatchReader(connection)
        self._places = PlaceReader(self._reader)
        self._written = WrittenReader(connection, self._reader)

    async def of_message(self, place: MessageId) -> Found:
        """The story of one message, by any of its ids; raises `KafkaError` with a sentence."""
        waiting = await self._waiting(place)
        if waiting is not None:
            return await self._still_waits(place, waiting)
        station = await self._station(place)
        root, asked = await self._root(station), place
        return await self._story(root, asked)

    async def of_trace(self, trace_id: str, from_ms: int) -> list[Found]:
        """The stories of all messages of a trace; one without an id if no message is known."""
        written = await self._written.of_trace(trace_id, from_ms)
        if not written.steps:
            where = "in __trace" if written.is_there else "for there is no topic __trace"
            raise NoSuchRecordError(f"Nothing is written of the trace {trace_id}, {where}.")
        found: list[Found] = []
        told: set[MessageId] = set()
        names = sorted({step.message_id for step in written.steps if step.message_id is not None})
        notes: list[str] = []
        for name in names:
            place = MessageId.parse(name)
            if place in told:
                continue
            try:
                story = await self.of_message(place)
            except KafkaError as error:
                notes.append(str(error))
                continue
            told.update(each for station in story.stations for each in station.ids)
            found.append(story)
        if not found:
            timeline = tell((), written.steps, notes)
            found.append(Found(None, timeline, trace_ids=[trace_id]))
        return found

    # -- the record ------------------------------------------------------------------------------

    async def _waiting(self, place: MessageId) -> DelayedMessage | None:
        """The message, if it waits for its time there; `KafkaError` if there is no such place."""
        topic = await self._connection.find_topic(place.topic)
        topic.partition(place.partition)
        try:
            outcomes = await DelayedOperations(self._connection).describe_delayed([place])
        except KafkaError:
            # Other brokers than ours delay nothing.
            return None
        outcome = outcomes[place]
        if isinstance(outcome, KafkaError):
            return None
        return outcome[0] if outcome else None

    async def _station(self, place: MessageId) -> Station:
        station = await self._places.read(place)
        if station is None:
            station = await self._places.find_copy(place)
        if station is not None:
            return station
        partition = place.topic_partition
        bounds = (await self._reader.bounds([partition]))[partition]
        if place.offset >= bounds.end:
            raise NoSuchRecordError(
                f"{place} is not there: the next record of {partition} will have offset "
                f"{bounds.end} or more."
            )
        raise NoSuchRecordError(
            f"{place} holds no record that is shown: it was compacted away, cancelled, or is a "
            "mark of the broker's own."
        )

    async def _root(self, station: Station) -> Station:
        """Where the message began; the station itself if that is not there any more."""
        origin = station.origin
        if origin is None or origin in station.ids:
            return station
        try:
            topic = await self._connection.find_topic(origin.topic)
            topic.partition(origin.partition)
            return await self._station(origin)
        except KafkaError:
            return station

    # -- all the rest ----------------------------------------------------------------------------

    async def _story(self, root: Station, asked: MessageId) -> Found:
        from_ms = self._from_ms(root)
        groups = await self._group_names()
        family = await find_family(self._connection, self._reader, root, from_ms, groups)
        stations = [root, *sorted(family.stations, key=lambda each: each.turn)]
        committed = await self._committed(groups, stations)
        audit = await self._audit(stations, from_ms, committed)
        stations = [_with_moments(each, audit) for each in stations]
        written = await self._steps(stations, from_ms)
        notes = self._notes(stations, audit, committed, written)
        if not family.is_complete:
            notes.append("Not all of the topics for retries and dead letters was looked through.")
        if asked not in {each for station in stations for each in station.ids}:
            notes.append(f"{asked} names it, and does not lead back to it.")
        notes += await self._retries_that_wait(stations, family.retry_topics)
        timeline = tell(stations, written.steps, notes)
        return Found(root.ids[0], timeline, stations, trace_ids=written.trace_ids)

    def _from_ms(self, root: Station) -> int:
        """No event of the message is older, as far as its own time is right."""
        time_ms = root.record.timestamp if root.sent_ms is None else root.sent_ms
        return min(max(time_ms, 0), self._now_ms)

    async def _still_waits(self, place: MessageId, waiting: DelayedMessage) -> Found:
        audit = await read_audit(
            self._connection,
            [place.topic],
            min(max(waiting.sent_ms, 0), self._now_ms),
            lambda rows: rows.moments(place).is_published,
        )
        written = await self._written.of_messages([place], waiting.sent_ms)
        # Nothing but the broker's index tells of the record itself.
        record = Record(place.offset, waiting.sent_ms, waiting.key, None)
        station = Station(place, record, None, moments=audit.moments(place))
        left_ms = max(waiting.due_ms - self._now_ms, 0)
        notes = [f"It waits {_until(waiting.due_ms)}."]
        if waiting.due_ms < NEVER_MS:
            notes = [f"It waits {_until(waiting.due_ms)}, for {said(left_ms)} more."]
        notes += self._audit_notes([station], audit)
        timeline = tell([station], written.steps, notes)
        return Found(place, timeline, [], waiting, written.trace_ids)

    async def _steps(self, stations: Sequence[Station], from_ms: int) -> WrittenSteps:
        contexts = [context_of(station.record.headers) for station in stations]
        traces = {each.trace_id for each in contexts if each is not None and each.is_sampled}
        places = [each for station in stations for each in station.ids]
        return await self._written.of_messages(places, from_ms, traces)

    async def _group_names(self) -> list[str]:
        try:
            listed = await GroupOperations(self._connection).list_groups()
        except KafkaError:
            return []
        return [each.group_id for each in listed][:_GROUPS_MAX]

    async def _committed(self, groups: Sequence[str], stations: Sequence[Station]) -> _Groups:
        partitions = {station.place.topic_partition for station in stations}
        found = _Groups()
        if not groups:
            return found
        outcomes = await GroupOffsetOperations(self._connection).list_group_offsets(
            groups, partitions=partitions
        )
        for group, offsets in outcomes.items():
            if not isinstance(offsets, KafkaError):
                found.committed[group] = {key: each.offset for key, each in offsets.items()}
        return found

    async def _audit(
        self, stations: Sequence[Station], from_ms: int, committed: _Groups
    ) -> AuditRows:
        """The rows up to where they tell when each group passed that has passed by now."""

        def is_enough(rows: AuditRows) -> bool:
            for station in stations:
                moments = rows.moments(station.place)
                passed = {each.group for each in moments.groups if each.has_passed}
                offsets = committed.of(station.place.topic_partition)
                expected = {
                    group for group, offset in offsets.items() if offset > station.place.offset
                }
                if not moments.is_published or not expected <= passed:
                    return False
            return True

        topics = {station.place.topic for station in stations}
        return await read_audit(self._connection, topics, from_ms, is_enough)

    async def _retries_that_wait(
        self, stations: Sequence[Station], retry_topics: Sequence[str]
    ) -> list[str]:
        """What may have been sent on and is not shown again yet: only its key tells."""
        key = stations[0].record.key
        notes: list[str] = []
        if key is None:
            return notes
        for topic in retry_topics:
            try:
                listing = await DelayedOperations(self._connection).list_delayed(topic)
            except KafkaError:
                continue
            notes += [
                f"{each.id} waits {_until(each.due_ms)}, and has the same key: it may be this one."
                for each in listing.messages
                if each.key == key
            ]
        return notes

    def _notes(
        self,
        stations: Sequence[Station],
        audit: AuditRows,
        committed: _Groups,
        written: WrittenSteps,
    ) -> list[str]:
        notes: list[str] = []
        root = stations[0]
        if root.transaction is TransactionState.OPEN:
            notes.append("Its transaction is still open: readers of committed data wait for it.")
        if root.transaction is TransactionState.ABORTED:
            notes.append("Its transaction was aborted: readers of committed data never see it.")
        notes += self._audit_notes(stations, audit)
        if not written.is_complete:
            notes.append("Not all of __trace was read: there may be more steps.")
        for station in stations:
            notes += _group_notes(station, committed, audit)
        return notes

    def _audit_notes(self, stations: Sequence[Station], audit: AuditRows) -> list[str]:
        if not audit.is_there:
            return [
                "There is no topic __audit, so nobody tells when it was appended and replicated, "
                "and when groups were past it. Headwater makes it a minute after its first record."
            ]
        notes = []
        if not all(_is_published(each) for each in stations):
            is_new = self._now_ms - self._from_ms(stations[-1]) < _PUBLISHED_WITHIN_MS
            notes.append(
                "When it was appended and replicated is not published yet (within a minute)."
                if is_new
                else "Nothing in __audit tells when all of it was appended and replicated."
            )
        if not audit.is_complete:
            notes.append("Not all of __audit was read: what is far behind the record is left out.")
        return notes


def _is_published(station: Station) -> bool:
    return station.moments is not None and station.moments.is_published


def _until(due_ms: int) -> str:
    if due_ms >= NEVER_MS:
        return "for being moved to the dead-letter topic, since it was given up"
    return f"until {shown_moment(due_ms)}"


def _with_moments(station: Station, audit: AuditRows) -> Station:
    waited_at = station.waited_at
    return replace(
        station,
        moments=audit.moments(station.place),
        waited=None if waited_at is None else audit.moments(waited_at),
    )


def _group_notes(station: Station, committed: _Groups, audit: AuditRows) -> list[str]:
    notes = []
    told = () if station.moments is None else station.moments.groups
    place = station.place
    for group, offset in committed.of(place.topic_partition).items():
        if 0 <= offset <= place.offset:
            behind = place.offset + 1 - offset
            notes.append(
                f"{group} has not committed past {place}: it is {counted(behind, 'offset')} behind."
            )
        elif offset >= 0 and group not in {each.group for each in told}:
            reason = " When, is not published yet (within a minute)." if audit.is_there else ""
            notes.append(f"{group} has committed past {place}.{reason}")
    return notes
