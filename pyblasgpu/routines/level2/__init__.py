"""Routines on vectors and matrices: level 2."""
