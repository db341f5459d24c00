"""Delayed records: how they lie in a log, how they are delivered, and the headers that count."""
