"""The simulated metadata store, outside of all brokers."""
