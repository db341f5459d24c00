"""What the brokers of a cluster agree on, and the controller that decides it.

- `store`: the metadata store, with ZooKeeper's semantics.
- `image`: what the store says about brokers, topics and configurations, as values that handlers
  read; `image.change` is the step from one image to the next.
- `controller`: the one broker that changes them; its concerns have modules of their own.
"""
