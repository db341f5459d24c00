"""Transactions: producers with a transactional id, kept in `__transaction_state`."""
