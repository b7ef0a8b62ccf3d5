"""Products of a matrix and a vector, and updates of a matrix by vectors."""
