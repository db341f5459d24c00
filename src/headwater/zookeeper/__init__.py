"""ZooKeeper's servers, for development and for tests: one, or an ensemble of three.

- `release` finds or fetches the program.
- `configuration` writes what a server reads.
- `server` runs one server, `ensemble` several that agree.

The client's side is `headwater.cluster.store`; nothing here knows what is stored.
"""
