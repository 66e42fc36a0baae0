"""CPython's generic algorithms over traced values, and what models are registered in. No model is imported here."""
