"""The run's record in Redis, and the only code that touches it."""
