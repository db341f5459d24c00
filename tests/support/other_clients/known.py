"""The third-party clients that the conformance tests know."""

from tests.support.other_clients.aiokafka import AiokafkaClient
from tests.support.other_clients.confluent import ConfluentClient
from tests.support.other_clients.contract import AdminClient, Client
from tests.support.other_clients.kafka_python import KafkaPythonClient
from tests.support.other_clients.kcat import KcatClient

ADMIN_CLIENTS: list[type[AdminClient]] = [ConfluentClient, KafkaPythonClient, AiokafkaClient]
CLIENTS: list[type[Client]] = [KcatClient, *ADMIN_CLIENTS]
