"""The Python client measured beside kafka-python, aiokafka and confluent-kafka."""
