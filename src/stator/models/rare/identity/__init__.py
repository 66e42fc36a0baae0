"""Weak proxies, and how much memory objects take."""
