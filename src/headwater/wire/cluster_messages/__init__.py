"""Messages that Kafka does not have, most of them between brokers, declared as Kafka's are."""
