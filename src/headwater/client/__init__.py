"""The client: administers, writes to and reads from any Kafka cluster, on asyncio and one loop.

`ClusterConnection` knows the brokers and holds a channel to each. On it stand `Admin`,
`PlainProducer`, which sends batches and keeps their order, and `PlainFetcher`, which reads
partitions from offsets that the caller keeps. Nothing here imports a server package, so all of it
works against Apache Kafka as well.
"""
