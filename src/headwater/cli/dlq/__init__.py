"""`headwater dlq`: dead letters listed, shown, kept in files, sent back and deleted."""
