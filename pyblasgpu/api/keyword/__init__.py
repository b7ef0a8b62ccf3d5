"""Keyword functions: the package's own signatures."""
