"""From the spool to the cluster, in order, until each record has arrived."""
