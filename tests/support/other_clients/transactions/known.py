"""The clients that write transactions, other people's and our own, and those that read them."""

from tests.support.other_clients.transactions.aiokafka import AiokafkaReader, AiokafkaTransactions
from tests.support.other_clients.transactions.confluent import (
    ConfluentReader,
    ConfluentTransactions,
)
from tests.support.other_clients.transactions.contract import (
    TransactionalProducer,
    TransactionReader,
)
from tests.support.other_clients.transactions.headwater import HeadwaterTransactions
from tests.support.other_clients.transactions.kafka_python import (
    KafkaPythonReader,
    KafkaPythonTransactions,
)
from tests.support.other_clients.transactions.kcat import KcatReader

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
