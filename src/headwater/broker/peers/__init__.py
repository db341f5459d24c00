"""The other brokers: ways to them, their addresses, and what they lead."""
