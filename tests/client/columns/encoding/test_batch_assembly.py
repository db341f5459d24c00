from hypothesis import given
from hypothesis import strategies as st

from headwater.client.columns.encoding.batch_assembly import assemble_batch
from headwater.wire.records import (
    Compression,
    Record,
    decode_batch,
    encode_batch,
    read_batch_header,
)
from headwater.wire.records.record_section import encode_section
from tests.support.values.record_strategies import INT16, INT32, INT64, compressions, record_lists


@given(record_lists(), compressions, INT64, INT16, INT32, st.booleans(), st.booleans())
def test_assembles_what_the_plain_encoder_makes(
    given_records: list[Record],
    compression: Compression,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    is_transactional: bool,
    was_of_another: bool,
) -> None:
    records = [record._replace(offset=index) for index, record in enumerate(given_records)]
    assembled = assemble_batch(
        encode_section(records, 0, records[0].timestamp),
        record_count=len(records),
        base_timestamp=records[0].timestamp,
        max_timestamp=max(record.timestamp for record in records),
        compression=compression,
        compression_level=None,
        is_transactional=is_transactional,
    )
    if was_of_another:
        assembled.assign(5, 6, 7)
    assembled.assign(producer_id, producer_epoch, base_sequence)
    batch = bytes(assembled)
    assert len(batch) == assembled.size_bytes
    assert batch == encode_batch(
        records,
        compression=compression,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=is_transactional,
    )
    assert decode_batch(batch) == records
    assert read_batch_header(batch).is_transactional == is_transactional
