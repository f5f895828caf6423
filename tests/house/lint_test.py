"""Checks that the lint covers the whole plain half."""
import unittest

import lint
from house import ROOT, source_files
from layers_test import PLAIN


class Lint(unittest.TestCase):
    def test_every_plain_room_is_linted_and_no_other(self):
        linted = {path.parts[1] for path in source_files() if path.suffix == ".cpp" and lint.is_linted(ROOT / path)}
        self.assertEqual(linted, PLAIN)

    def test_tests_are_not_linted(self):
        self.assertTrue(lint.is_linted(ROOT / "src/data/csv.cpp"))
        self.assertFalse(lint.is_linted(ROOT / "src/data/csv_test.cpp"))


if __name__ == "__main__":
    unittest.main()
