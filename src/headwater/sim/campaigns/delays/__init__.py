"""Campaigns of delayed deliveries: of one log, and of three brokers."""
