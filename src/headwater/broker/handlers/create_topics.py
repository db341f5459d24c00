"""CreateTopics (key 19): create topics, or find out whether it could be done.

The rules are the controller's; other brokers forward the request. Each topic has an outcome of its
own; a name that comes twice is refused once, as in Kafka. When the request's time is over, topics
that are still being made are answered with REQUEST_TIMED_OUT.
"""

from collections.abc import Iterator

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.change_log import deed, unfinished
from headwater.broker.requests.fair_turns import DESCRIPTIONS_PER_TURN, in_turns
from headwater.broker.settings.config_entries import topic_entries
from headwater.broker.topics.change_limits import check_change_count, within
from headwater.cluster.image.image import ClusterImage
from headwater.cluster.topics.new_topic import CreatedTopic, ManualAssignment, NewTopic
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

_SETTINGS_SINCE = 5


async def handle(request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
    outcomes: dict[str, CreatedTopic | KafkaError]
    try:
        check_change_count(len(request.topics))
        wanted = [_new_topic(topic) for topic in request.topics]
        outcomes = await within(
            request.timeout_ms,
            context.controller.create_topics(wanted, validate_only=request.validate_only),
        )
    except KafkaError as error:
        outcomes = {topic.name: error for topic in request.topics}
    return CreateTopicsResponse(
        topics=[
            _result(name, outcome, context)
            async for name, outcome in in_turns(outcomes.items(), DESCRIPTIONS_PER_TURN)
        ]
    )


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        [
            ManualAssignment(assignment.partition_index, tuple(assignment.broker_ids))
            for assignment in topic.assignments
        ],
        {config.name: config.value for config in topic.configs},
    )


def _result(
    name: str, outcome: CreatedTopic | KafkaError, context: RequestContext
) -> CreatableTopicResult:
    if isinstance(outcome, KafkaError):
        return CreatableTopicResult(
            name=name, error_code=outcome.code, error_message=str(outcome), configs=[]
        )
    return CreatableTopicResult(
        name=name,
        topic_id=outcome.topic_id,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=outcome.partition_count,
        replication_factor=outcome.replication_factor,
        configs=_settings(outcome, context) if context.api_version >= _SETTINGS_SINCE else [],
    )


def _settings(topic: CreatedTopic, context: RequestContext) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.is_read_only,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
        )
        for entry in topic_entries(context.broker.settings, topic.configs)
    ]


def _is_seen(
    request: CreateTopicsRequest, response: CreateTopicsResponse, image: ClusterImage
) -> bool:
    return request.validate_only or all(
        topic.error_code or topic.name in image.topics for topic in response.topics
    )


def _deeds(request: CreateTopicsRequest, response: CreateTopicsResponse) -> Iterator[str]:
    if not request.validate_only:
        yield deed(
            "created", "topic", [_told(each) for each in response.topics if not each.error_code]
        )
        outcomes = ((each.name, each.error_code) for each in response.topics)
        yield unfinished("creation of topic", outcomes)


def _told(topic: CreatableTopicResult) -> str:
    if topic.num_partitions < 0:
        return topic.name  # Another broker's answer in an old version.
    return (
        f"{topic.name} (partitions: {topic.num_partitions}, replicas: {topic.replication_factor})"
    )


API = ApiHandler(CARDS[ApiKey.CREATE_TOPICS], handle, forwarded_until=_is_seen, deeds=_deeds)
