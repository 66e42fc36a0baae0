"""NumPy's arrays, traced as tensors."""
