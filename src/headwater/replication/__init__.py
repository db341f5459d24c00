"""A partition's role, its in-sync replicas and its high watermark; requests that wait for them."""
