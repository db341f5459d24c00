"""DeleteTopics (key 20): delete topics, by name or by id.

A topic that is named more than once, also once by name and once by id, is refused once: the client
may not know what it is about to lose. Brokers other than the controller forward the request.
"""

import uuid
from collections import Counter
from collections.abc import Iterator

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import ZERO_TOPIC_ID
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.change_log import deed, unfinished
from headwater.broker.requests.fair_turns import in_turns
from headwater.broker.topics.change_limits import check_change_count, within
from headwater.cluster.image.image import ClusterImage, TopicImage
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

_DELETION_DISABLED_SINCE = 3
_IDS_SINCE = 6


async def handle(request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
    if context.api_version < _IDS_SINCE:
        wanted = [DeleteTopicState(name=name) for name in request.topic_names]
    else:
        wanted = request.topics
    try:
        check_change_count(len(wanted))
    except KafkaError as error:
        return DeleteTopicsResponse(responses=await _refuse_all(wanted, error))
    # What they are called is looked up now: afterwards the names and ids are gone.
    results, targets = _sort_out(wanted, context.broker.image)
    outcomes: dict[str | uuid.UUID, KafkaError | None]
    try:
        outcomes = await within(request.timeout_ms, context.controller.delete_topics(targets))
    except KafkaError as error:
        outcomes = dict.fromkeys(targets, error)
    for target, result in targets.items():
        outcome = outcomes[target]
        if outcome is not None:
            result.error_code, result.error_message = _told(outcome, context.api_version)
    return DeleteTopicsResponse(responses=results)


async def _refuse_all(
    wanted: list[DeleteTopicState], error: KafkaError
) -> list[DeletableTopicResult]:
    reason = str(error)
    return [
        DeletableTopicResult(
            name=topic.name, topic_id=topic.topic_id, error_code=error.code, error_message=reason
        )
        async for topic in in_turns(wanted)
    ]


def _sort_out(
    wanted: list[DeleteTopicState], image: ClusterImage
) -> tuple[list[DeletableTopicResult], dict[str | uuid.UUID, DeletableTopicResult]]:
    """A result for each topic, and those that are to be deleted, by what they are asked by."""
    occurrences = Counter(_topic_of(topic, image) for topic in wanted)
    results: list[DeletableTopicResult] = []
    targets: dict[str | uuid.UUID, DeletableTopicResult] = {}
    refused: set[str | uuid.UUID] = set()
    for topic in wanted:
        result = DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)
        found = _find(topic, image)
        if found is not None:
            result.name, result.topic_id = found.name, found.topic_id
        identity = _topic_of(topic, image)
        if (topic.name is None) == (topic.topic_id == ZERO_TOPIC_ID):
            _refuse(result, "A topic is deleted by its name or by its id, one of them.")
        elif occurrences[identity] > 1:
            if identity in refused:
                continue
            refused.add(identity)
            _refuse(result, "The topic is in the request more than once.")
        else:
            targets[topic.topic_id if topic.name is None else topic.name] = result
        results.append(result)
    return results, targets


def _topic_of(topic: DeleteTopicState, image: ClusterImage) -> str | uuid.UUID:
    """What tells whether two entries mean the same topic: its id, or its name if it has none."""
    found = _find(topic, image)
    if found is not None:
        return found.topic_id
    return topic.topic_id if topic.name is None else topic.name


def _find(topic: DeleteTopicState, image: ClusterImage) -> TopicImage | None:
    if topic.name is None:
        return image.topic_by_id(topic.topic_id)
    return image.topics.get(topic.name)


def _refuse(result: DeletableTopicResult, reason: str) -> None:
    result.error_code = ErrorCode.INVALID_REQUEST
    result.error_message = reason


def _told(error: KafkaError, version: int) -> tuple[ErrorCode, str]:
    code = error.code
    if code is ErrorCode.TOPIC_DELETION_DISABLED and version < _DELETION_DISABLED_SINCE:
        code = ErrorCode.INVALID_REQUEST
    return code, str(error)


def _is_seen(_: DeleteTopicsRequest, response: DeleteTopicsResponse, image: ClusterImage) -> bool:
    return all(
        result.error_code
        or (
            result.topic_id not in image.topic_names
            # Before version 6 the answer has only names.
            and (result.topic_id != ZERO_TOPIC_ID or result.name not in image.topics)
        )
        for result in response.responses
    )


def _deeds(_: DeleteTopicsRequest, response: DeleteTopicsResponse) -> Iterator[str]:
    outcomes = [(each.name or str(each.topic_id), each.error_code) for each in response.responses]
    yield deed("deleted", "topic", [name for name, code in outcomes if not code])
    yield unfinished("deletion of topic", outcomes)


API = ApiHandler(CARDS[ApiKey.DELETE_TOPICS], handle, forwarded_until=_is_seen, deeds=_deeds)
