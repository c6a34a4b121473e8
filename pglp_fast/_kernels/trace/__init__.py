"""One step of many users: forward, release, posterior, ledger."""
