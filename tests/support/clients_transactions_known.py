"""The third-party clients that write transactions, and those that read them."""

from tests.support.clients_transactions_aiokafka import AiokafkaReader, AiokafkaTransactions
from tests.support.clients_transactions_confluent import ConfluentReader, ConfluentTransactions
from tests.support.clients_transactions_contract import TransactionalProducer, TransactionReader
from tests.support.clients_transactions_kafka_python import (
    KafkaPythonReader,
    KafkaPythonTransactions,
)
from tests.support.clients_transactions_kcat import KcatReader

PRODUCERS: list[type[TransactionalProducer]] = [
    ConfluentTransactions,
    KafkaPythonTransactions,
    AiokafkaTransactions,
]
PRODUCERS_BY_NAME = {each.name: each for each in PRODUCERS}
READERS: list[type[TransactionReader]] = [
    ConfluentReader,
    KafkaPythonReader,
    AiokafkaReader,
    KcatReader,
]
