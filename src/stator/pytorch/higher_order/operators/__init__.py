"""Higher-order operators: a file each, named as the operator, whose `trace(space, operator, args, kwargs)` models it."""
