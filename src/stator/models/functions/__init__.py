"""What is called and what it runs in: functions, methods, cells, frames, generators, modules."""
