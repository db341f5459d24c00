"""`headwater audit replicas`: whether all replicas of a partition hold the same."""
