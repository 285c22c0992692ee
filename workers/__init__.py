"""The worker processes of a team without a Celery app of its own."""
