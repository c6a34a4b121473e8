"""Moving users: releasers, streams, ledgers."""
