"""Exactly once: transactions that tasks prepare, and a decision by which all of them count."""
