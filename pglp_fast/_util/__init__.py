"""What every room uses: checks, arrays, files, threads, progress and statistics."""
