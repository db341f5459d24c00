"""`traceparent` and `tracestate`: read if they are right, left alone if they are not."""

import asyncio
import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.client.tracing.trace_context import (
    TraceContext,
    context_of,
    current,
    current_trace,
    new_span_id,
    new_trace_id,
    parse_traceparent,
    sampled_context_of,
)

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"


def test_the_example_of_the_specification() -> None:
    context = parse_traceparent(f"00-{TRACE}-{SPAN}-01")
    assert context == TraceContext(TRACE, SPAN, 1)
    assert context is not None
    assert context.is_sampled
    assert context.traceparent == f"00-{TRACE}-{SPAN}-01".encode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-01\n",
        f"0-{TRACE}-{SPAN}-01",
    ],
)
def test_what_is_no_context(text: str) -> None:
    assert parse_traceparent(text) is None


def test_later_versions_may_say_more() -> None:
    assert parse_traceparent(f"01-{TRACE}-{SPAN}-01-what-comes") == (TRACE, SPAN, 1, None)
    assert parse_traceparent(f"01-{TRACE}-{SPAN}-01what") is None


@given(st.one_of(st.none(), st.binary(), st.text(), st.from_regex(rb"[0-9a-f-]{40,60}")))
def test_garbage_is_none_and_no_error(value: bytes | str | None) -> None:
    context = parse_traceparent(value)
    if context is not None:
        assert parse_traceparent(context.traceparent) == context


@given(st.lists(st.tuples(st.sampled_from(["traceparent", "tracestate", "x"]), st.binary())))
def test_garbage_in_headers_is_no_error(headers: list[tuple[str, bytes]]) -> None:
    sampled = sampled_context_of(headers)
    assert sampled is None or sampled == context_of(headers)


def test_the_state_goes_along_and_the_last_header_holds() -> None:
    other = f"00-{TRACE[::-1]}-{SPAN}-00".encode()
    headers = [
        ("traceparent", other),
        ("tracestate", b"vendor=1"),
        ("traceparent", f"00-{TRACE}-{SPAN}-01".encode()),
    ]
    context = context_of(headers)
    assert context == TraceContext(TRACE, SPAN, 1, b"vendor=1")
    assert context is not None
    assert context_of(context.child("1" * 16).headers()) == context.child("1" * 16)
    assert sampled_context_of(headers[:1]) is None
    long = [("traceparent", context.traceparent), ("tracestate", b"x" * 513)]
    assert context_of(long) == TraceContext(TRACE, SPAN, 1)


def test_new_ids_are_ids() -> None:
    generator = random.Random(1)
    context = TraceContext(new_trace_id(generator), new_span_id(generator))
    assert parse_traceparent(context.traceparent) == context


def test_the_current_trace_is_that_of_the_task_and_of_those_it_starts() -> None:
    mine = TraceContext(TRACE, SPAN)

    async def look() -> TraceContext | None:
        await asyncio.sleep(0)
        return current_trace()

    async def handle() -> TraceContext | None:
        current.set(mine)
        return await asyncio.create_task(look())

    async def scenario() -> None:
        handling = asyncio.create_task(handle())
        assert await look() is None
        assert await handling == mine
        assert await look() is None

    asyncio.run(scenario())
    found: list[TraceContext | None] = []
    thread = threading.Thread(target=lambda: found.append(current_trace()))
    token = current.set(mine)
    try:
        thread.start()
        thread.join()
    finally:
        current.reset(token)
    assert found == [None]
