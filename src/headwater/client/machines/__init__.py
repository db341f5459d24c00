"""What sans-io machines have in common, and the driver that runs them on an event loop."""
