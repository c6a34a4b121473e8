"""asv suites. Run all with  asv run -E existing --quick  or one with  -b NAME."""
