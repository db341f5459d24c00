"""Requests whose answers must be the same from Headwater and from Apache Kafka."""
