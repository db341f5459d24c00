"""Three brokers beside three of Apache Kafka's: throughput, failures, restarts, many partitions."""
