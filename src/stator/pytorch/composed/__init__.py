"""Tensors of kinds that no graph has, held as the plain tensors that they are made of: nested and quantised ones."""
