"""The two coordinators: consumer groups and transactions, as states of internal topics."""
