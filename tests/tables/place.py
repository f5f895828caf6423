"""Runs `sinew` in a folder of its own. SINEW names the program."""
import os
import pathlib
import subprocess
import tempfile
import unittest

from messy import write

SINEW = os.path.abspath(os.environ.get("SINEW", "build/release/bin/sinew"))


class Messy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def sinew(self, *words):
        return subprocess.run([SINEW, *map(str, words)], cwd=self.folder, capture_output=True, text=True, timeout=60)

    def init(self, table):
        path = write(table, self.folder)
        target = ["--target", table.target] if table.target else []
        return path, self.sinew("init", path.name, *target, "--force")
