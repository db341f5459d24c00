"""`log dump` as text, in the format of Apache Kafka's dumper, so that scripts can read either.

A line for each thing, fields as `name: value`. What is wrong comes last and on another stream,
grouped by file as Apache's tool does it; complaints that it has no words for are sentences of ours.
Where this departs from Apache's tool is listed in `docs/log-tools.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TextIO

from headwater.storage.inspection.dump.items import (
    BatchItem,
    DumpItem,
    Fault,
    IndexedOffsetMissing,
    OffsetGap,
    OffsetMismatch,
    RecordItem,
    TimestampDisorder,
    TimestampMismatch,
)
from headwater.storage.inspection.dump.lines import DECODERS, LINES, batch_line, record_line

#: Complaints of one kind about one file that are kept; of the others only the number is.
COMPLAINTS_MAX: Final = 1000


class TextDump:
    """Writes items as lines to `out`, and at the end, when `finish` is called, faults to `err`."""

    def __init__(
        self,
        out: TextIO,
        err: TextIO,
        *,
        print_data: bool = False,
        key_decoder: str = "string",
        value_decoder: str = "string",
        skip_batches: bool = False,
        skip_record_metadata: bool = False,
    ) -> None:
        self._out = out
        self._err = err
        self._print_data = print_data
        self._decode_key = DECODERS[key_decoder]
        self._decode_value = DECODERS[value_decoder]
        self._skip_batches = skip_batches
        self._skip_record_metadata = skip_record_metadata
        self._complaints: dict[tuple[str, str], list[str]] = {}
        self._left_out: dict[tuple[str, str], int] = {}
        self.fault_count = 0

    def write(self, items: Iterable[DumpItem]) -> None:
        write = self._out.write
        for item in items:
            if type(item) is RecordItem:
                write(self._record(item))
            elif type(item) is BatchItem:
                if not self._skip_batches:
                    write(batch_line(item))
            elif isinstance(item, (Fault, OffsetGap)):
                self._complain(item)
            else:
                write(LINES[type(item)](item) + "\n")

    def _record(self, item: RecordItem) -> str:
        record = item.record if item.sent is None else item.sent
        line, prefix = "", "| "
        if not self._skip_record_metadata:
            line, prefix = record_line(item), " "
        # Of a delayed record it is the data that was sent.
        if self._print_data and (item.sent is not None or not item.header.is_control):
            if record.key is not None:
                line += f"{prefix}key: {self._decode_key(record.key)}"
            if record.value is not None:
                line += f" payload: {self._decode_value(record.value)}"
        return line + "\n"

    # -- complaints ------------------------------------------------------------------------------

    def _complain(self, item: Fault | OffsetGap) -> None:
        if isinstance(item, Fault):
            self.fault_count += 1
        for kind, describe in _COMPLAINTS.items():
            if isinstance(item, kind):
                title, line = describe(item)
                break
        group = (title, item.path)
        lines = self._complaints.setdefault(group, [])
        if len(lines) < COMPLAINTS_MAX:
            lines.append(line)
        else:
            self._left_out[group] = self._left_out.get(group, 0) + 1

    def finish(self) -> None:
        for group, lines in self._complaints.items():
            if group[0]:
                self._err.write(f"{group[0]}\n")
            self._err.writelines(f"{line}\n" for line in lines)
            if group in self._left_out:
                self._err.write(f"  and {self._left_out[group]} more\n")


#: The heading of the group that a complaint belongs to, and its own line; most specific kind first.
_COMPLAINTS: Final[dict[type, Callable[[Any], tuple[str, str]]]] = {
    OffsetMismatch: lambda item: (
        f"Mismatches in :{item.path}",
        f"  Index offset: {item.index_offset}, log offset: {item.log_offset}",
    ),
    TimestampMismatch: lambda item: (
        f"Found timestamp mismatch in :{item.path}",
        f"  Index timestamp: {item.index_timestamp}, log timestamp: {item.log_timestamp}",
    ),
    TimestampDisorder: lambda item: (
        f"Found out of order timestamp in :{item.path}",
        f"  Index timestamp: {item.index_timestamp}, "
        f"Previously indexed timestamp: {item.previous_timestamp}",
    ),
    IndexedOffsetMissing: lambda item: (
        "The following indexed offsets are not found in the log.",
        f"Indexed offset: {item.index_offset}, found log offset: {item.log_offset}",
    ),
    OffsetGap: lambda item: (
        f"Non-consecutive offsets in {item.path}",
        f"  {item.offset} is followed by {item.next_offset}",
    ),
    Fault: lambda item: ("", fault_line(item)),
}


def fault_line(fault: Fault) -> str:
    place = "" if fault.position is None else f"position {fault.position}: "
    return f"{fault.path}: {place}{fault.sentence}."
