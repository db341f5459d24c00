"""Spark sessions: Java found or fetched, quiet, and with settings that suit streams.

Nobody needs this package to use `format("headwater")`; it is what `headwater pipeline` starts Spark
with, and what a program may use that has no SparkSession yet.
"""
