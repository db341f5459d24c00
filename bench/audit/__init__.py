"""What the audit costs an append."""
