"""Torch's own controls (`torch._dynamo.config`, `set_stance` …), read where torch keeps them, without importing it."""
