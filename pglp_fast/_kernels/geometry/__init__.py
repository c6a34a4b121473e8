"""Exact convex geometry and nearest sites on the integer lattice."""
