"""The third-party clients that the conformance tests know."""

from tests.support.clients_aiokafka import AiokafkaClient
from tests.support.clients_confluent import ConfluentClient
from tests.support.clients_contract import AdminClient, Client
from tests.support.clients_kafka_python import KafkaPythonClient
from tests.support.clients_kcat import KcatClient

ADMIN_CLIENTS: list[type[AdminClient]] = [ConfluentClient, KafkaPythonClient, AiokafkaClient]
CLIENTS: list[type[Client]] = [KcatClient, *ADMIN_CLIENTS]
