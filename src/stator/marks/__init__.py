"""How a program tells the tracer what to do with its functions and with the sizes of its tensors."""
