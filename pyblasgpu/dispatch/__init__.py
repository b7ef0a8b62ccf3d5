"""The choice at run time: problem to algorithm, Config, split of k and copies of operands."""
