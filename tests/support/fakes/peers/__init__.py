"""Stand-ins that are talked to over sockets or transports, and for what lies behind a seam."""
