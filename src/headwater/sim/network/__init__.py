"""A network in memory: connections that delay, tear and lose."""
