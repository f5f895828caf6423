#!/bin/sh
# Runs the Python with the reference packages. Without SINEW_PYTHON, runs python3; the tests then name missing packages.
exec "${SINEW_PYTHON:-python3}" "$@"
