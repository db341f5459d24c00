"""Lag: how far a streaming query is behind, told to Kafka as the offsets of a consumer group.

Spark keeps its positions in a checkpoint that no Kafka tool reads. Here they are committed as a
group's after every batch, for whoever watches groups; Spark itself never reads them back.
"""
