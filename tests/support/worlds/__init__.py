"""Coordinators' shards in virtual time, without a broker."""
