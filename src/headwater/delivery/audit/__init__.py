"""Audit on the client's side: ids that are missing or came twice, and stages of one's own."""
