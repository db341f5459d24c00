"""`headwater metadata`: the metadata store as a file, to move a cluster or to have a backup."""
