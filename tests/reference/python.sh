#!/bin/sh
# The Python with the reference packages, else the plain one (the tests then say what they lack).
exec "${SINEW_PYTHON:-python3}" "$@"
