"""Stand-ins that a test plays without a network: clusters, leaders, coordinators, producers."""
