"""Redrive: dead letters looked at, and sent back by tasks that survive crashes."""
