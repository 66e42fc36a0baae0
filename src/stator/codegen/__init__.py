"""The residual program: what is left to do in Python, written as source."""
