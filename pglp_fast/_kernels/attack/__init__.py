"""Inference along the hidden Markov chain, and the adversary's best guess."""
