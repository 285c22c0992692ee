"""The seam to Celery: tasks, messages and what a worker process does beside them."""
