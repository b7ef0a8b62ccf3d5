"""Sizes, counts and blocks of patches of other libraries: see `patch`."""
