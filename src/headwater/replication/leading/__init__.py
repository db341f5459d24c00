"""The leader's part: how far its followers are, and which of them are in sync."""
