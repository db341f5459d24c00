"""What consumers see of a log that has hidden batches: pieces of it, and an end in front of some.

To a consumer a hidden batch is a gap between offsets, such as compaction leaves. A read begins
behind the hidden batches that it meets, and goes on behind the next ones if the pieces between are
small: a region of a file is sent without copying it, but each has its cost, and so has each fetch
that an answer of one small batch leads to. Large pieces are a region each, and a read ends behind
one. None of this walks through hidden batches: segments know where they end (`hidden_batches`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from headwater.storage.disk.files import FileRegion

if TYPE_CHECKING:
    from headwater.storage.segments.segment import LogSegment
    from headwater.storage.segments.segment_list import SegmentList

#: A piece of this size is worth a region of its own.
PIECE_BYTES_LARGE: Final = 64 << 10
#: So much is joined at most, of so many pieces: it is read while everybody else waits.
_JOINED_BYTES_MAX: Final = 1 << 20
_JOINED_PIECES_MAX: Final = 1024
#: Pieces that are no further apart are read together, with what is between them.
_READ_OVER_BYTES: Final = 4096


class JoinedRegion(NamedTuple):
    """Several stretches of a file, which are sent as one."""

    pieces: tuple[FileRegion, ...]

    @property
    def size(self) -> int:
        return sum([piece.size for piece in self.pieces])

    @property
    def position(self) -> int:
        return self.pieces[0].position

    @property
    def end(self) -> int:
        """The position behind the last of them."""
        last = self.pieces[-1]
        return last.position + last.size

    def read(self) -> bytes:
        """The bytes; fewer than `size` only if the file was truncated in the meantime."""
        parts: list[memoryview] = []
        near: list[FileRegion] = []
        for piece in self.pieces:
            if near and piece.position - near[-1].position - near[-1].size > _READ_OVER_BYTES:
                parts += _read_together(near)
                near = []
            near.append(piece)
        return b"".join([*parts, *_read_together(near)])


def _read_together(pieces: list[FileRegion]) -> list[memoryview]:
    file, start, _ = pieces[0]
    _, last_position, last_size = pieces[-1]
    data = memoryview(file.read_at(start, last_position + last_size - start))
    return [data[position - start : position - start + size] for _, position, size in pieces]


class VisiblePiece(NamedTuple):
    """The start of a read: a batch that consumers see, and how far they see all behind it."""

    region: FileRegion | JoinedRegion
    #: Whether more that can be seen follows at once, which was left out to send this uncopied.
    has_more: bool


def visible_pieces(
    segment: LogSegment, position: int, end: int, size_max: int, *, joins: bool
) -> VisiblePiece:
    """What can be seen from the batch at `position` up to `end`, at most `size_max` bytes.

    The batch must not be a hidden one. `joins` allows for more than one piece.
    """
    pieces: list[FileRegion] = []
    size = 0
    has_more = False
    stretches = segment.hidden.behind(position) if segment.hidden is not None else iter(())
    while position < end and size < size_max:
        if pieces and (
            not joins
            or size >= PIECE_BYTES_LARGE * len(pieces)
            or size >= _JOINED_BYTES_MAX
            or len(pieces) >= _JOINED_PIECES_MAX
        ):
            has_more = True
            break
        stretch = next(stretches, None)
        stop = end if stretch is None else min(stretch.position, end)
        piece_size = min(stop - position, size_max - size)
        if pieces:
            piece_size = min(piece_size, _JOINED_BYTES_MAX - size)
        pieces.append(segment.region(position, piece_size))
        size += piece_size
        position = end if stretch is None else stretch.end
    region = pieces[0] if len(pieces) == 1 else JoinedRegion(tuple(pieces))
    return VisiblePiece(region, has_more)


def visible_end(segments: SegmentList, upper_offset: int) -> int:
    """The end of what can be seen in front of `upper_offset`: that, or where hidden batches begin.

    If the last batch in front of `upper_offset` is hidden, so are perhaps others in front of it,
    over any number of segments; it is the first one's offset.
    """
    latest: LogSegment | None = None
    start = upper_offset
    for number in range(segments.floor_number(upper_offset - 1), -1, -1):
        segment = segments[number]
        if segment.size_bytes == 0:
            continue
        stretch = None
        if segment.hidden is not None:
            stretch = segment.hidden.last_before(start)
        if stretch is None:
            if _is_seen_behind(segment, segment.base_offset, 0, start):
                break
            continue
        if _is_seen_behind(segment, stretch.next_offset, stretch.end, start):
            break
        start = stretch.first_offset
        if stretch.position > 0:
            break
        # All of the segment so far is hidden: it depends on the one in front of it.
        run_start = segment.hidden.run_start if segment.hidden is not None else None
        if run_start is not None:
            start = run_start
            break
        latest = latest or segment
    if latest is not None and latest.hidden is not None:
        latest.hidden.run_start = start
    return start


def _is_seen_behind(segment: LogSegment, next_offset: int, end: int, upper_offset: int) -> bool:
    """Whether a batch that can be seen follows a stretch, and begins in front of an offset.

    Batches follow each other without a gap, unless compaction has made one.
    """
    if upper_offset <= next_offset or end >= segment.size_bytes:
        return False
    return int.from_bytes(segment.log.read_at(end, 8), "big") < upper_offset
