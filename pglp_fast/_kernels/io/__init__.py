"""Text fields, labels and fixes."""
