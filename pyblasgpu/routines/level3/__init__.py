"""Products, updates and triangular systems: level 3."""
