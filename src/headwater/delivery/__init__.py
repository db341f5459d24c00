"""What brings records to where they belong, on the client alone: works with any Kafka."""
