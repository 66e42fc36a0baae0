"""Functions over functions: vmap, leaf functions, higher-order operators."""
