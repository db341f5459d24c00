"""The broker's part in transactions: markers, partitions, producer ids."""
