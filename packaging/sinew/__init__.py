"""Sinew's programs as a Python package. `sinew` and `python -m sinew` start them; there is no Python interface."""
