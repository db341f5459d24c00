"""`headwater cluster`: how a cluster is, at a glance."""
