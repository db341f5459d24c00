"""From a frame to the handler of its API, and from what comes of that to an answer.

Handlers of requests start in the order in which the requests came. The hot ones run here and now;
each of the others gets a task. What only the controller can answer may come from elsewhere, see
`forwarding`.

What brokers ask each other is for those alone who have proven to be brokers (`broker_proof`). To
others our own APIs are as unknown as any, and Kafka's are CLUSTER_AUTHORIZATION_FAILED.

What a peer can do wrong ends here. A header that cannot be read, an API or a version that is not
served, a body that is not what the header says: the connection is closed with one line in the log,
as Kafka does, since nothing behind it can be trusted. ApiVersions alone is answered in any version.
What a handler refuses is the answer's error code. If a handler fails in a way that nobody foresaw,
the client hears UNKNOWN_SERVER_ERROR, the log has the traceback, and the broker goes on.

Errors are counted here for all handlers, from the answers that went out. To look through those of
Produce and Fetch would cost every record something, so these two count where they refuse.
"""

from __future__ import annotations

import logging

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import BrokerContext, RequestContext
from headwater.broker.handlers.api_versions import unsupported_version_response
from headwater.broker.requests.api_handler import ApiHandler, ExchangeHandler
from headwater.broker.requests.forwarding import answer
from headwater.net.exchange import Exchange
from headwater.wire.api_keys import PRIVATE_APIS, ApiKey, request_class, response_class
from headwater.wire.codec import MalformedMessageError, decode
from headwater.wire.frames import RequestHeader, encode_response, read_request_header
from headwater.wire.schema import Message

_logger = logging.getLogger(__name__)

#: A longer request is read by a thread: it may take a tenth of a second, and others wait.
_READ_INLINE_BYTES_MAX = 128 << 10


class Dispatcher:
    """The request handler of all of a broker's connections."""

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker

    def __call__(self, exchange: Exchange) -> None:
        try:
            header = read_request_header(exchange.frame)
        except MalformedMessageError as error:
            exchange.disconnect(str(error))
            return
        handler = self._broker.api_table.get(header.api_key)
        if handler is None:
            exchange.disconnect(f"there is no API with key {header.api_key} here")
            return
        context = RequestContext(self._broker, header, exchange.connection)
        card = handler.card
        if header.api_version not in card.versions:
            self._refuse_version(exchange, context)
        elif card.brokers_only and not context.is_broker:
            self._refuse_client(exchange, context)
        elif isinstance(handler, ExchangeHandler):
            self._handle_exchange(handler, exchange, context)
        else:
            self._handle(handler, exchange, context)

    def _refuse_version(self, exchange: Exchange, context: RequestContext) -> None:
        header = context.header
        if header.api_key == ApiKey.API_VERSIONS:
            response = unsupported_version_response()
            exchange.answer(
                encode_response(ApiKey.API_VERSIONS, 0, header.correlation_id, response)
            )
            context.record_response(response)
            return
        exchange.disconnect(f"{context.api_key.name} is not served in version {header.api_version}")

    def _refuse_client(self, exchange: Exchange, context: RequestContext) -> None:
        name = context.api_key.name
        if context.api_key in PRIVATE_APIS:
            exchange.disconnect(f"{name} is for brokers of this cluster alone")
            return
        reason = f"{name} is for brokers alone"
        self._answer_error(exchange, context, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, reason)

    def _handle_exchange(
        self, handler: ExchangeHandler, exchange: Exchange, context: RequestContext
    ) -> None:
        try:
            handler.handle(exchange, context)
        except MalformedMessageError as error:
            exchange.disconnect(f"a {handler.api_key.name} request cannot be read: {error}")
        except Exception:
            _logger.exception("%s failed", handler.api_key.name)
            context.record_error(ErrorCode.UNKNOWN_SERVER_ERROR)
            if not exchange.is_completed:
                exchange.disconnect(f"the broker failed to handle {handler.api_key.name}")

    def _handle(self, handler: ApiHandler, exchange: Exchange, context: RequestContext) -> None:
        tasks = self._broker.tasks
        if tasks.may_begin():
            tasks.spawn(self._answer(handler, exchange, context))
            return
        connection = exchange.connection

        def begin() -> None:
            tasks.spawn(self._answer(handler, exchange, context))
            connection.release()

        # What comes behind it must not be begun before it.
        connection.hold()
        tasks.wait(begin)

    async def _answer(
        self, handler: ApiHandler, exchange: Exchange, context: RequestContext
    ) -> None:
        try:
            request = await self._read(handler, exchange, context.header)
            response = await answer(handler, request, context)
            parts = encode_response(
                handler.api_key, context.api_version, context.correlation_id, response
            )
        except MalformedMessageError as error:
            exchange.disconnect(f"a {handler.api_key.name} request cannot be read: {error}")
        except KafkaError as error:
            self._answer_error(exchange, context, error.code, str(error))
        except Exception:
            _logger.exception("%s failed", handler.api_key.name)
            self._answer_error(
                exchange, context, ErrorCode.UNKNOWN_SERVER_ERROR, "the broker failed"
            )
        else:
            exchange.answer(parts)
            context.record_response(response)

    async def _read(
        self, handler: ApiHandler, exchange: Exchange, header: RequestHeader
    ) -> Message:
        def read_body() -> Message:
            body, _ = decode(
                request_class(handler.api_key),
                exchange.frame,
                header.api_version,
                header.body_position,
            )
            return body

        if len(exchange.frame) > _READ_INLINE_BYTES_MAX:
            return await self._broker.run_in_thread(read_body)
        return read_body()

    def _answer_error(
        self, exchange: Exchange, context: RequestContext, code: ErrorCode, reason: str
    ) -> None:
        """An answer that is nothing but an error, where the API has a place for it."""
        response = response_class(context.api_key)()
        if not any(field.name == "error_code" for field in response.FIELDS):
            context.record_error(code)
            exchange.disconnect(f"{context.api_key.name} cannot be answered: {reason}")
            return
        response.error_code = code  # type: ignore[attr-defined]
        exchange.answer(
            encode_response(context.api_key, context.api_version, context.correlation_id, response)
        )
        context.record_response(response)
