"""Arrays of any library: dtypes, layouts, streams."""
