"""The producer: records are gathered into batches, which a sender delivers."""
