"""`headwater zookeeper`."""
