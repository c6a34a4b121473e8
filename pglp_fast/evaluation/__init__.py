"""What a release costs, and what it leaves an adversary to guess."""
