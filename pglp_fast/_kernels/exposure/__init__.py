"""Isolated nodes and the repair of policies."""
