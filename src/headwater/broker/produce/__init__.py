"""A produce request on its way into partitions."""
