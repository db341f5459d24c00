"""How batches are numbered, and what holes in the numbers mean."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.checks import InvariantError
from headwater.base.ids import TopicPartition
from headwater.client.producer.idempotence.identity import (
    EPOCH_MAX,
    NO_IDENTITY,
    ProducerIdentity,
)
from headwater.client.producer.idempotence.partition_sequence import (
    LINE_LENGTH_MAX,
    SEQUENCE_COUNT,
    PartitionSequence,
    advance,
)
from headwater.client.producer.idempotence.sequence_book import Refusal, SequenceBook

PLACE = TopicPartition("orders", 0)
STRANGER = ProducerIdentity(7, 0)
FIRST = ProducerIdentity(7, 1)
SECOND = ProducerIdentity(7, 2)


@dataclass(eq=False)
class Batch:
    record_count: int = 10
    topic_partition: TopicPartition = PLACE
    identity: ProducerIdentity = NO_IDENTITY
    base_sequence: int = -1

    @property
    def numbers(self) -> tuple[int, int]:
        return self.identity.epoch, self.base_sequence


def book_with(*batches: Batch) -> SequenceBook:
    """A producer that the leaders know, with these batches under way."""
    book = SequenceBook()
    book.adopt(STRANGER)
    for partition in range(2):
        book.number(batch := Batch(topic_partition=TopicPartition("orders", partition)))
        book.acknowledged(batch)
    book.adopt(FIRST)
    for batch in batches:
        book.number(batch)
    return book


def test_a_leader_gets_to_know_a_producer_before_it_gets_more() -> None:
    book = SequenceBook()
    book.adopt(STRANGER)
    first, second = Batch(), Batch()
    book.number(first)
    assert not book.may_number(PLACE)
    book.acknowledged(first)
    book.number(second)
    assert book.may_number(PLACE)
    # The same producer is known in its next epoch, another one is not.
    book.acknowledged(second)
    for identity, is_known in ((FIRST, True), (ProducerIdentity(8, 0), False)):
        book.start_anew(identity)
        book.number(batch := Batch())
        assert book.may_number(PLACE) == is_known
        book.refused(batch)


def test_numbers_follow_each_other() -> None:
    batches = [Batch(3), Batch(1), Batch(5), Batch(2)]
    other = Batch(4, TopicPartition("orders", 1))
    book_with(*batches, other)
    assert [batch.base_sequence for batch in batches] == [0, 3, 4, 9]
    assert other.base_sequence == 0
    assert {batch.identity for batch in batches} == {FIRST}


@given(start=st.integers(0, SEQUENCE_COUNT - 1), count=st.integers(1, 10_000))
def test_numbers_begin_again_after_the_largest(start: int, count: int) -> None:
    after = advance(start, count)
    assert 0 <= after < 2**31
    assert after == (start + count if start + count <= 2**31 - 1 else start + count - 2**31)


def test_a_batch_may_span_the_largest_number() -> None:
    sequence = PartitionSequence(FIRST)
    sequence.next_sequence = 2**31 - 4
    across, after = Batch(10), Batch(1)
    sequence.number(across)
    sequence.number(after)
    assert across.base_sequence == 2**31 - 4
    assert after.base_sequence == 6


def test_nothing_is_numbered_without_an_identity() -> None:
    book = SequenceBook()
    assert not book.may_number(PLACE)
    with pytest.raises(InvariantError):
        book.number(Batch())


def test_a_leader_remembers_five_batches_so_there_are_no_more_since_the_oldest_in_doubt() -> None:
    batches = [Batch() for _ in range(LINE_LENGTH_MAX)]
    book = book_with(*batches)
    assert not book.may_number(PLACE)
    # Its answer did not come; those of the later ones did.
    book.doubted(batches[0])
    for batch in batches[1:]:
        book.acknowledged(batch)
    assert not book.may_number(PLACE)
    assert book.may_resend(batches[0])
    book.acknowledged(batches[0])
    assert book.may_number(PLACE)


def test_the_oldest_is_known_to_be_written_when_a_later_one_is() -> None:
    oldest, later = Batch(), Batch()
    book = book_with(oldest, later)
    book.acknowledged(later)
    assert book.refused_number(oldest) is Refusal.WRITTEN
    book.given_up(oldest)
    assert not book.has_gap
    assert book.may_number(PLACE)


def test_only_the_oldest_is_sent_again() -> None:
    first, second = Batch(), Batch()
    book = book_with(first, second)
    assert book.refused_number(second) is Refusal.OUT_OF_TURN
    assert not book.may_resend(second)
    assert book.may_resend(first)
    book.acknowledged(first)
    assert book.may_resend(second)
    assert second.base_sequence == 10


def test_a_given_up_batch_is_resolved_by_the_next_one() -> None:
    given_up, following = Batch(), Batch()
    book = book_with(given_up, following)
    book.given_up(given_up)
    assert not book.may_number(PLACE)
    assert not book.has_gap
    book.acknowledged(following)
    assert book.may_number(PLACE)


def test_a_given_up_batch_leaves_a_gap_if_the_next_one_is_refused() -> None:
    given_up, following, last = Batch(), Batch(), Batch()
    book = book_with(given_up, following, last)
    book.given_up(given_up)
    assert book.refused_number(following) is Refusal.GAP
    assert book.has_gap
    assert not book.may_resend(following)
    book.adopt(SECOND)
    assert (following.numbers, last.numbers) == ((2, 0), (2, 10))
    assert book.may_resend(following)
    # The answer for the old number may still be on its way.
    assert book.was_renumbered(last)
    assert not book.was_renumbered(last)


def test_a_given_up_batch_with_nobody_behind_it_leaves_a_gap() -> None:
    book = book_with(batch := Batch())
    book.given_up(batch)
    assert book.has_gap
    book.adopt(SECOND)
    book.number(following := Batch())
    assert following.numbers == (2, 0)


def test_a_refused_batch_waits_for_older_ones_before_others_are_numbered_anew() -> None:
    older, refused, behind = Batch(), Batch(), Batch()
    book = book_with(older, refused, behind)
    book.refused(refused)
    assert not book.has_gap
    assert book.may_resend(older)
    book.acknowledged(older)
    assert book.has_gap
    book.adopt(SECOND)
    assert (older.numbers, behind.numbers) == ((1, 0), (2, 0))


def test_a_refused_batch_that_was_in_doubt_before_may_have_been_written() -> None:
    refused, behind = Batch(), Batch()
    book = book_with(refused, behind)
    book.doubted(refused)
    book.refused(refused)
    assert not book.has_gap
    book.acknowledged(behind)
    assert not book.has_gap
    assert book.may_number(PLACE)


def test_an_unsure_hole_before_a_batch_in_doubt_and_a_refused_one() -> None:
    given_up, in_doubt, refused, behind = Batch(), Batch(), Batch(), Batch()
    book = book_with(given_up, in_doubt, refused, behind)
    book.given_up(given_up)
    book.refused(refused)
    # Nobody knows of the second one yet, so it must keep its number.
    assert not book.has_gap
    assert book.may_resend(in_doubt)


def test_lost_after_it_was_acknowledged() -> None:
    written, following = Batch(), Batch()
    book = book_with(written, following)
    book.acknowledged(written)
    assert book.refused_number(following) is Refusal.LOST


def test_a_leader_that_knows_nothing_wants_a_beginning() -> None:
    book = book_with(written := Batch(), first := Batch(), second := Batch())
    book.acknowledged(written)
    assert book.forgotten(second) is Refusal.OUT_OF_TURN
    assert book.forgotten(first) is Refusal.GAP
    book.adopt(SECOND)
    assert (first.numbers, second.numbers) == ((2, 0), (2, 10))


def test_other_partitions_change_their_identity_when_they_are_idle() -> None:
    elsewhere = TopicPartition("orders", 1)
    book = book_with(batch := Batch(), other := Batch(topic_partition=elsewhere))
    book.refused(batch)
    book.adopt(SECOND)
    assert not book.may_number(elsewhere)
    assert book.may_resend(other)
    book.acknowledged(other)
    book.number(following := Batch(topic_partition=elsewhere))
    assert (other.numbers, following.numbers) == ((1, 0), (2, 0))


def test_parts_take_the_numbers_of_the_whole() -> None:
    book = book_with(first := Batch(), whole := Batch(10), last := Batch())
    parts = [Batch(4), Batch(6)]
    book.split(whole, parts)
    assert [part.base_sequence for part in parts] == [10, 14]
    book.acknowledged(first)
    assert book.may_resend(parts[0])
    assert not book.may_resend(parts[1])
    book.acknowledged(parts[0])
    book.acknowledged(parts[1])
    assert book.may_resend(last)
    assert last.base_sequence == 20
    with pytest.raises(InvariantError):
        book.split(last, [Batch(3)])


def test_the_last_epoch_has_no_next_one() -> None:
    assert FIRST.with_next_epoch() == SECOND
    assert ProducerIdentity(7, EPOCH_MAX).with_next_epoch() is None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ("number", "acknowledge", "doubt", "give up", "refuse", "unexpected", "forgotten")
            ),
            st.integers(0, 2),
            st.integers(0, LINE_LENGTH_MAX - 1),
        ),
        max_size=60,
    ),
    st.booleans(),
)
def test_a_gap_is_known_of_without_looking_at_every_partition(
    steps: list[tuple[str, int, int]], closes_gaps: bool
) -> None:
    book = SequenceBook()
    book.adopt(STRANGER)
    under_way: dict[TopicPartition, list[Batch]] = {}
    for step, partition, index in steps:
        place = TopicPartition("orders", partition)
        line = under_way.setdefault(place, [])
        if step == "number":
            if book.may_number(place):
                book.number(batch := Batch(topic_partition=place))
                line.append(batch)
            continue
        if index >= len(line):
            continue
        batch = line[index]
        if step == "acknowledge":
            book.acknowledged(batch)
        elif step == "doubt":
            book.doubted(batch)
        elif step == "give up":
            book.given_up(batch)
        elif step == "refuse":
            book.refused(batch)
        elif step == "unexpected":
            book.refused_number(batch)
        else:
            book.forgotten(batch)
        if step in ("acknowledge", "give up", "refuse"):
            line.remove(batch)
        assert book.has_gap == any(each.has_gap for each in book._partitions.values())
        if closes_gaps and book.has_gap:
            identity = book.identity.with_next_epoch()
            assert identity is not None
            book.adopt(identity)
            assert not book.has_gap
