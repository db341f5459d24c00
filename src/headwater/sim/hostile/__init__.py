"""Peers that send what no client would, against a broker in a process of its own."""
