"""The steps of a rebalance: join, sync, leave, and who may be whose successor."""
