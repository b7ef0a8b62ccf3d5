"""SGEMM on tensor cores: float32 as pairs of FP16, multiplied by wgmma, with the bound of FP32's FMA."""
