"""Topics that come into being because a client asks for them (`auto.create.topics.enable`).

Kafka answers such a request at once, without the topic, and has the client ask again. Here the
answer waits until the topic is there, which takes milliseconds, so that a first produce does not
begin with a retry; if it should take long, the client is told to come again. It is the controller
who creates topics, with the defaults of its own settings. Internal topics belong
to the coordinators, who know what settings they need: they are not made for whoever asks, but for
that of traces, which clients write to.
"""

from collections.abc import Sequence
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TRACE_TOPIC
from headwater.broker.context import RequestContext
from headwater.broker.requests.change_log import deed, log_deeds, unfinished
from headwater.broker.topics.change_limits import check_change_count
from headwater.broker.topics.requests import request_topics
from headwater.broker.topics.trace_topic import create_trace_topic
from headwater.cluster.image.image import is_internal
from headwater.cluster.topics.new_topic import NewTopic

#: Clients give up on a metadata request after 30 seconds or more.
_WAIT_MS_MAX: Final = 5_000

#: What means that it may be there soon: somebody else was quicker, it takes long, or a controller
#: is being elected.
_UNDER_WAY: Final = (
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_CONTROLLER,
)


async def create_missing(names: Sequence[str], context: RequestContext) -> dict[str, ErrorCode]:
    """Create topics with the broker's defaults; by name, why one cannot be used yet."""
    broker = context.broker
    if TRACE_TOPIC in names:
        failure = await create_trace_topic(broker)
        told = {} if failure is None else {TRACE_TOPIC: _told(failure)}
        others = [name for name in names if name != TRACE_TOPIC]
        return told | await create_missing(others, context)
    if not broker.settings.boolean("auto.create.topics.enable"):
        return {}
    ordinary = [name for name in names if not is_internal(name)]
    if not ordinary:
        return {}
    try:
        check_change_count(len(ordinary))
        wanted = [NewTopic(name) for name in ordinary]
        failures = await request_topics(broker, wanted, _WAIT_MS_MAX)
    except KafkaError as error:
        return dict.fromkeys(ordinary, _told(error))
    created = [name for name in ordinary if name not in failures]
    late = unfinished("creation of topic", ((name, failures[name].code) for name in failures))
    log_deeds(context, [deed("asked for, and so created,", "topic", created), late])
    return {name: _told(error) for name, error in failures.items()}


def _told(error: KafkaError) -> ErrorCode:
    return ErrorCode.LEADER_NOT_AVAILABLE if error.code in _UNDER_WAY else error.code
