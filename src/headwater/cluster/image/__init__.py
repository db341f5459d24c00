"""The cluster image: what brokers know, how it is read, checked and passed on."""
