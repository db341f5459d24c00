"""What a subscription to the metrics of clients may say, with Kafka's error codes."""

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.settings.client_metrics import check_client_metrics_setting


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("interval.ms", "100"),
        ("interval.ms", "3600000"),
        ("metrics", ""),
        ("metrics", "*"),
        ("metrics", "org.apache.kafka.consumer.,org.apache.kafka.producer."),
        ("match", ""),
        ("match", "client_id=a.*,client_source_port=10"),
        ("match", " client_software_name = apache-kafka-java , client_software_version=4.*"),
        ("match", r"client_id=\p{Alpha}+"),
        ("match", "client_instance_id=x,client_source_address=10[.].*"),
    ],
)
def test_what_it_may_say(name: str, text: str) -> None:
    check_client_metrics_setting(name, text)


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("interval.ms", "99", ErrorCode.INVALID_REQUEST),
        ("interval.ms", "3600001", ErrorCode.INVALID_REQUEST),
        ("interval.ms", "-5", ErrorCode.INVALID_REQUEST),
        ("interval.ms", "x", ErrorCode.INVALID_CONFIG),
        ("interval.ms", "", ErrorCode.INVALID_CONFIG),
        ("no.such", "1", ErrorCode.INVALID_REQUEST),
        ("match", "nope=a", ErrorCode.INVALID_CONFIG),
        ("match", "client_id", ErrorCode.INVALID_CONFIG),
        ("match", "client_id=a=b", ErrorCode.INVALID_CONFIG),
        ("match", "client_id=[a", ErrorCode.INVALID_CONFIG),
        ("match", "client_id=a,", ErrorCode.INVALID_CONFIG),
        ("match", "client_id=" + "(" * 9_000, ErrorCode.INVALID_CONFIG),
    ],
)
def test_what_it_may_not_say(name: str, text: str, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as raised:
        check_client_metrics_setting(name, text)
    assert raised.value.code is code
    assert str(raised.value)
