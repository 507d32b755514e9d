"""Measures the hot paths: what `manage.py bench` runs. Durable throughout; speed is measured here and nowhere else."""
