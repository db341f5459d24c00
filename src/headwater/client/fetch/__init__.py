"""A reader's conversation with a broker, and what it brings."""
