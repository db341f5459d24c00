"""A client's way to a cluster: channels to brokers, metadata, coordinators, retries."""
