"""Spark looks for packages of such a name: it finds `format("headwater")` here."""

from headwater.pipeline.connector.data_source import HeadwaterDataSource as DefaultSource

__all__ = ["DefaultSource"]
