"""Decides what happens next in a run and does it; knows no Redis, no Celery and no HTTP."""
