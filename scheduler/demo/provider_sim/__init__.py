"""A model provider to run against: OpenAI's and Anthropic's APIs, over real HTTP, with real limits and scripted faults.

It is a process of its own (`python -m scheduler.demo.provider_sim`, or `manage.py provider_sim`) and knows nothing of
the scheduler: it enforces what a provider enforces, and counts what a provider sees.
"""
