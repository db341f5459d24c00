"""Seeded campaigns: each a function of a seed that raises if a promise is broken."""
