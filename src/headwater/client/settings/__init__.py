"""The settings of producers, consumers and admins: Kafka's names, a table for each."""
