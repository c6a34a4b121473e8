"""A plan, and tables released by it: in memory, from files to files."""
