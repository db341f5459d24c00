"""The metadata store: a small tree of nodes with ZooKeeper's semantics, which holds what a cluster
agrees on.

- `metadata_store` is the interface; everybody else in the broker sees only that.
- `node_tree` with `tree_transaction` and `watches` is its state machine, without any input or
  output.
- `embedded.store` serves the tree in this process; `journal` says what it needs to make changes
  durable, and `sqlite_journal` does so in one file.
- `zookeeper.connector` begins sessions with a ZooKeeper ensemble, through kazoo. Others see a
  `zookeeper.store`; `zookeeper.session` keeps its requests in order and knows when it is over,
  `zookeeper.requests` puts them to kazoo, `zookeeper.watches` remembers what it waits for, and
  `zookeeper.handler` brings kazoo's threads onto the event loop.
"""
