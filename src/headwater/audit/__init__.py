"""Audit without help from clients: what is stored and what groups commit, by bucket of time."""
