"""Consumer groups: members, assignments and offsets, kept in `__consumer_offsets`."""
