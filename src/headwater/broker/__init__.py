"""The broker: its parts put together, the one table of APIs, and a handler for each."""
