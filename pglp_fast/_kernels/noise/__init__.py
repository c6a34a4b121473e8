"""Noise polygons, exact probabilities, integer weights, samplers and proofs."""
