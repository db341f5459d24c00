"""Our connector for Spark measured beside Spark's own for Kafka."""
