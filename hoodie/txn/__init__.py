"""Transactions: how a write becomes visible as a whole, or not at all."""
