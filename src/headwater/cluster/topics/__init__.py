"""Topics that come, grow and go, and where their replicas are placed."""
