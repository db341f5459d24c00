"""Peers and clients that mean harm, and what becomes of it."""
