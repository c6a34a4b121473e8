"""What every kernel uses: the compiler's settings, bitmasks, growing arrays, random bits."""
