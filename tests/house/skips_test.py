"""Tests that skips.py finds every skipped test in ctest's log, and that each entry of the list has a reason."""
import unittest

import skips
from house import text_of

LOG = """Start testing: Nov 21 05:00 UTC
----------------------------------------------------------
1/2 Testing: data_test
1/2 Test: data_test
Output:
----------------------------------------------------------
[ RUN      ] RealTables.Diamonds
table_test.cpp:219: Skipped
[  SKIPPED ] RealTables.Diamonds (0 ms)
[  SKIPPED ] Sizes/Writer.Fills/3, where GetParam() = 8 (0 ms)
[  PASSED  ] 3 tests.
[  SKIPPED ] 2 tests, listed below:
[  SKIPPED ] RealTables.Diamonds
<end of output>
Test Passed.
2/2 Testing: cli
2/2 Test: cli
Output:
----------------------------------------------------------
test_a (apply_test.Apply.test_a) ... skipped 'needs sinew'
test_b (apply_test.Apply.test_b)
What it promises. ... skipped 'needs sinew'
test_c (apply_test.Apply.test_c) ... ok
OK (skipped=2)
<end of output>
Test Passed.
"""


class Skips(unittest.TestCase):
    def test_finds_all_skipped_tests(self):
        names, unclear = skips.skipped_in(LOG)
        self.assertEqual(names, {"RealTables.Diamonds", "Sizes/Writer.Fills/3", "Apply.test_a", "Apply.test_b"})
        self.assertEqual(unclear, [])

    def test_a_count_without_names_is_not_accepted(self):
        silent = LOG.replace("test_a (apply_test.Apply.test_a) ... skipped 'needs sinew'\n", "s\n")
        _, unclear = skips.skipped_in(silent)
        self.assertEqual(len(unclear), 1)

    def test_each_line_of_the_list_has_a_reason(self):
        for line in text_of("tests/skips.txt").splitlines():
            if line and not line.startswith("#"):
                self.assertGreaterEqual(len(line.split()), 4, line)


if __name__ == "__main__":
    unittest.main()
