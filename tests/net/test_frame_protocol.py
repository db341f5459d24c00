import asyncio
from struct import pack

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headwater.net import frame_protocol
from headwater.net.frame_memory import KEPT_OF_REQUESTS, SCRATCH_SIZE
from headwater.net.frame_protocol import FrameProtocol
from tests.support.fakes.peers.transports import FakeTransport, frame, turns

PAUSE = 1


class _Receiver(FrameProtocol):
    """Keeps what it receives, and pauses where it is told to."""

    def __init__(self, frame_size_max: int = 2**20, pause_after: frozenset[int] | None = None):
        super().__init__(asyncio.get_running_loop(), frame_size_max)
        self.frames: list[bytes] = []
        self.views: list[memoryview] = []
        self.refused: list[int] = []
        self.pause_after = pause_after or frozenset()

    def receive_frame(self, frame: memoryview) -> None:
        assert not frame.readonly
        self.frames.append(bytes(frame))
        self.views.append(frame)
        if len(self.frames) in self.pause_after:
            self.pause(PAUSE)

    def refuse_frame(self, size: int) -> None:
        self.refused.append(size)
        self.transport.abort()


async def _feed(receiver: _Receiver, stream: bytes, cuts: list[int]) -> None:
    transport = FakeTransport()
    transport.connect(receiver)
    position = 0
    for end in [*sorted(cuts), len(stream)]:
        while position < end and not receiver.refused:
            position += transport.receive(stream[position:end])
            if transport.is_reading_paused:
                receiver.resume(PAUSE)
            await turns(2)
    while transport.is_reading_paused and not receiver.refused:
        receiver.resume(PAUSE)
        await turns(2)


_SIZES = st.one_of(
    st.integers(1, 40),
    st.sampled_from([16_383, 16_384, 32_767, 32_768, 32_769, 65_535, 65_536, 65_537, 300_000]),
)


@given(sizes=st.lists(_SIZES, max_size=12), data=st.data())
def test_any_split_of_a_stream_gives_the_same_frames(sizes: list[int], data: st.DataObject) -> None:
    bodies = [bytes([index]) * size for index, size in enumerate(sizes)]
    stream = b"".join(frame(body) for body in bodies)
    # Cuts around the edges of frames are the interesting ones.
    edges = [0]
    for body in bodies:
        edges.append(edges[-1] + 4 + len(body))
    near = st.sampled_from(edges).flatmap(lambda edge: st.integers(edge - 5, edge + 5))
    anywhere = st.integers(0, max(len(stream) - 1, 0))
    cuts = data.draw(st.lists(st.one_of(near, anywhere), max_size=20))
    pauses = data.draw(st.frozensets(st.integers(1, 12)))

    async def run() -> None:
        receiver = _Receiver(pause_after=pauses)
        await _feed(receiver, stream, [cut for cut in cuts if 0 < cut < len(stream)])
        assert receiver.frames == bodies
        # Nothing that came later was written over what was received before.
        assert [bytes(view) for view in receiver.views] == bodies
        assert receiver.bytes_in == len(stream)

    asyncio.run(run())


def test_one_byte_at_a_time() -> None:
    bodies = [b"a", b"bcd", b"x" * 200, b"e"]
    stream = b"".join(map(frame, bodies))

    async def run() -> None:
        receiver = _Receiver()
        await _feed(receiver, stream, list(range(1, len(stream))))
        assert receiver.frames == bodies

    asyncio.run(run())


@given(
    garbage=st.binary(min_size=4, max_size=200),
    cuts=st.lists(st.integers(1, 199), max_size=10),
)
@example(garbage=b"\0\0\0\0", cuts=[])
@example(garbage=b"\xff\xff\xff\xff", cuts=[2])
@example(garbage=b"\x7f\xff\xff\xff", cuts=[1, 2, 3])
def test_garbage_is_frames_or_is_refused_and_raises_nothing(
    garbage: bytes, cuts: list[int]
) -> None:
    # By the book: what a reader of the whole stream finds.
    expected: list[bytes] = []
    position = 0
    is_refused = False
    while len(garbage) - position >= 4:
        size = int.from_bytes(garbage[position : position + 4], "big", signed=True)
        if not 0 < size <= 100:
            is_refused = True
            break
        if position + 4 + size > len(garbage):
            break
        expected.append(garbage[position + 4 : position + 4 + size])
        position += 4 + size

    async def run() -> None:
        receiver = _Receiver(frame_size_max=100)
        await _feed(receiver, garbage, [cut for cut in cuts if cut < len(garbage)])
        assert receiver.frames == expected
        assert bool(receiver.refused) == is_refused

    asyncio.run(run())


def test_connections_of_a_loop_share_the_scratch_and_do_not_mix() -> None:
    async def run() -> None:
        first, second = _Receiver(), _Receiver()
        one, other = FakeTransport(), FakeTransport()
        one.connect(first)
        other.connect(second)
        # Each is left with the beginning of a frame before the other reads.
        one.receive(frame(b"A" * 10)[:2])
        other.receive(frame(b"B" * 20)[:3])
        one.receive(frame(b"A" * 10)[2:8])
        other.receive(frame(b"B" * 20)[3:])
        one.receive(frame(b"A" * 10)[8:])
        assert (first.frames, second.frames) == ([b"A" * 10], [b"B" * 20])

    asyncio.run(run())


def test_the_full_buffer_is_taken_only_after_a_part_has_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> None:
        receiver = _Receiver(frame_size_max=2**30)
        transport = FakeTransport()
        transport.connect(receiver)
        taken: list[int] = []
        memory = frame_protocol.memory_of(asyncio.get_running_loop(), KEPT_OF_REQUESTS)
        take = memory.take

        class Spy:
            scratch = memory.scratch
            scratch_bytes = memory.scratch_bytes
            small_scratch = memory.small_scratch

            def take(self, size: int) -> memoryview:
                taken.append(size)
                return take(size)

        monkeypatch.setattr(receiver, "_memory", Spy())
        transport.receive(pack(">i", 2**30) + b"x" * 100)
        assert taken == [frame_protocol.STAGE_SIZE]
        transport.receive(b"x" * frame_protocol.STAGE_SIZE)
        assert taken == [frame_protocol.STAGE_SIZE, 2**30]

    asyncio.run(run())


def test_after_a_large_frame_little_is_offered_and_after_small_ones_all() -> None:
    async def run() -> None:
        receiver = _Receiver(frame_size_max=2**30)
        transport = FakeTransport()
        transport.connect(receiver)
        assert len(receiver.get_buffer(-1)) == SCRATCH_SIZE
        transport.receive(frame(b"x" * 2_000_000))
        assert len(receiver.get_buffer(-1)) < SCRATCH_SIZE
        transport.receive(frame(b"small"))
        assert len(receiver.get_buffer(-1)) == SCRATCH_SIZE

    asyncio.run(run())


def test_two_reasons_to_pause_must_both_go() -> None:
    async def run() -> None:
        receiver = _Receiver()
        transport = FakeTransport()
        transport.connect(receiver)
        receiver.pause(1)
        receiver.pause(2)
        assert transport.is_reading_paused
        receiver.resume(1)
        await turns()
        assert transport.is_reading_paused
        receiver.resume(2)
        assert transport.is_reading_paused, "it must not go on inside of the call"
        await turns()
        assert not transport.is_reading_paused

    asyncio.run(run())
