"""`headwater brokers`: the brokers of a cluster, and moving replicas onto them and off them."""
