"""A mixed load of every kind of run, while processes and servers fail around it."""
