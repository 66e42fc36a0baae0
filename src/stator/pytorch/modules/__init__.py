"""`nn.Module`, compiled modules, optimizers."""
