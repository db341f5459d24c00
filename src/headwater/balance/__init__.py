"""Which replicas should lie where: a planner, sans-io, that explains what it wants to move."""
