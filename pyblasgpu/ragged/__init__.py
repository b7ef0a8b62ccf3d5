"""Ragged batches: matrices of unequal sizes as rows of numbers, and launches that read them from a table."""
