"""The clients that write transactions, other people's and our own, and those that read them."""

from tests.support.clients_transactions_aiokafka import AiokafkaReader, AiokafkaTransactions
from tests.support.clients_transactions_confluent import ConfluentReader, ConfluentTransactions
from tests.support.clients_transactions_contract import TransactionalProducer, TransactionReader
from tests.support.clients_transactions_headwater import HeadwaterTransactions
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
OWN_PRODUCER: type[TransactionalProducer] = HeadwaterTransactions
PRODUCERS_BY_NAME = {each.name: each for each in [*PRODUCERS, OWN_PRODUCER]}
READERS: list[type[TransactionReader]] = [
    ConfluentReader,
    KafkaPythonReader,
    AiokafkaReader,
    KcatReader,
]
