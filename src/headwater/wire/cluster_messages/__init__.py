"""Messages between the brokers of one cluster that Kafka does not have, declared as Kafka's are."""
