"""One record on its way from the spool to the cluster."""

from __future__ import annotations

from headwater.base.checks import check, require
from headwater.base.errors import KafkaError
from headwater.client.errors import ClientClosedError
from headwater.client.producer.record_metadata import RecordMetadata
from headwater.client.spool.files.reader import NumberedRecord
from headwater.client.spool.files.record import SpooledRecord
from headwater.client.spool.shipping.producer import Delivery


class Shipment:
    """It is sent, possibly several times, until it is delivered or refused for good."""

    __slots__ = ("_delivery", "_error", "is_watched", "number", "record", "was_alone")

    def __init__(self, numbered: NumberedRecord) -> None:
        self.number: int = numbered.number
        self.record: SpooledRecord = numbered.record
        self._delivery: Delivery | None = None
        self._error: KafkaError | None = None
        #: Whether no other record can be to blame for what became of it.
        self.was_alone = False
        #: Whether the shipper is woken when it is done.
        self.is_watched = False

    def sent(self, delivery: Delivery, *, alone: bool) -> None:
        self._delivery, self._error = delivery, None
        self.was_alone = alone
        self.is_watched = False

    def refused_by_client(self, error: KafkaError) -> None:
        """The producer did not even take it."""
        self._delivery, self._error = None, error
        self.was_alone = True

    def forget_producer(self) -> None:
        """Its failure was that of a producer which is gone, not its own: it may be sent again."""
        self._delivery, self._error = None, ClientClosedError()
        self.was_alone = False

    @property
    def delivery(self) -> Delivery | None:
        return self._delivery

    @property
    def is_done(self) -> bool:
        return self._error is not None or (self._delivery is not None and self._delivery.done())

    @property
    def error(self) -> KafkaError | None:
        """What went wrong, once it is done."""
        if self._error is None and self._delivery is not None:
            return self._delivery.exception(0)
        return self._error

    def metadata(self) -> RecordMetadata:
        """Where it is, once it is done and nothing went wrong."""
        check(self._error is None, "a record that was refused is nowhere")
        return require(self._delivery, "a record that was never sent is nowhere").result(0)
