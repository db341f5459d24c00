"""Transactions: their states, the requests to coordinators, and the calls of users."""
