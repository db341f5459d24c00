"""Deterministic simulation: real code on a simulated world, replayed by one seed.

Nothing outside tests and tools imports this package; it may import everything.

- `faulty_disk`: a file system in memory that forgets and tears what was not made durable.
  `file_node` is what it knows of one file, `directory_tree` of the names, `faulty_file` what it
  gives out, and `disk.faults` are the errors and power cuts that a test asks of it. `file_journal`
  keeps a metadata store on it.
- `virtual_loop`: an event loop on virtual time, for any number of `process`es that can be killed;
  `clock` is the clock of one machine, `trace` tells whether two runs were the same.
- `network`: connections in memory that delay, cut up and lose; `transport` is one end of one.
- `broker_host`: a machine with the lives of one broker. `broker_world` has one of them, and
  `cluster_world` three, with `store.service` as the metadata store that outlives them; brokers
  reach it by `store.session` over `store.connection`. `world` is what both have in common.
- `broker_link` and `cluster_link` are a client's way to brokers; `topic_client`, `producing_client`
  and `reading_client` work with them and write into `history`. `cluster_observer` sees all brokers
  at once. `checkers` are what was promised, one file each.
- `group_member` and `transactional_copier` are clients of the two coordinators, request by request:
  `coordinator_lookup`, `range_assignment`, `group_offsets` and `transaction_requests` are their
  parts, `committed_reader` reads as they do. They write into `group_history` and
  `transaction_history`.
"""
