"""The broker beside Apache Kafka: same machine, same disk, same clients, taking turns."""
