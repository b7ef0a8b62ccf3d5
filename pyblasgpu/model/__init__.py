"""The cost model: how fast a Config ought to be, by arithmetic alone."""
