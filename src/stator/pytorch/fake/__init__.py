"""What operations return, learnt without data: fake tensors, and the memory of outcomes."""
