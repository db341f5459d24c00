"""Proxies that do to connections what networks do."""
