"""Where objects lie, how much memory they take, and when they die."""
