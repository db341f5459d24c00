"""Deterministic simulation: real code on a simulated world, replayed by one seed.

Nothing outside tests and tools imports this package; it may import everything.

- `faulty_disk`: a file system in memory that forgets and tears what was not made durable.
  `file_node` is what it knows of one file, `directory_tree` of the names, `faulty_file` what it
  gives out, and `disk_faults` are the errors and power cuts that a test asks of it. `file_journal`
  keeps a metadata store on it.
- `virtual_loop`: an event loop on virtual time, for any number of `process`es that can be killed;
  `clock` is the clock of one machine, `trace` tells whether two runs were the same.
- `network`: connections in memory that delay, cut up and lose; `transport` is one end of one.
- `broker_world`: one broker in all of this. `broker_link` is a client's way to it; `topic_client`,
  `producing_client` and `reading_client` work with it and write into `history`, which checks what
  the broker promised.
- `group_member` and `transactional_copier` are clients of the two coordinators, request by request:
  `coordinator_lookup`, `range_assignment`, `group_offsets` and `transaction_requests` are their
  parts, `committed_reader` reads as they do. They write into `group_history` and
  `transaction_history`.
"""
