"""What the adversary knows and does: mobility, priors, evidence, attacks."""
