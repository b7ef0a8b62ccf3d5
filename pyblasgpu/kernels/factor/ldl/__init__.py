"""LDL^H factors of symmetric and Hermitian matrices, with the pivots of Bunch and Kaufman."""
