"""Higher-order operators, a file each, named as the operator; `trace(space, operator, args, kwargs)` is its model."""
