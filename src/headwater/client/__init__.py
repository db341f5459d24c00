"""The client: administers, writes to and reads from any Kafka cluster, on asyncio or from threads.

`ClusterConnection` knows the brokers and holds channels to each. On it stand the admin operations
and, as sans-io machines that a `Driver` runs on one event loop, the producer and the consumer. Each
comes twice: `AsyncProducer`, `AsyncConsumer` and `AsyncAdmin` live on the caller's loop, while
`Producer`, `Consumer` and `Admin` have a loop in a thread of their own and are called from any.
Nothing here imports a server package, so all of it works against Apache Kafka as well.
"""
