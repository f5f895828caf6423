"""Every messy table is used, or refused by one sentence that names the place and the cure. Nothing is dropped in silence."""
import unittest

from messy import all_messy
from place import Messy

TABLES = all_messy()


class Init(Messy):
    def test_there_are_as_many_tables_as_oddities(self):
        self.assertGreaterEqual(len(TABLES), 60)
        self.assertEqual(len({table.name for table in TABLES}), len(TABLES))
        self.assertGreaterEqual(sum(table.whole for table in TABLES), 12)

    def test_init_reads_each_table_or_says_why_not(self):
        for table in TABLES:
            if table.options:
                continue  # the user has to change the job file first
            with self.subTest(table.name):
                _, done = self.init(table)
                if not table.error:
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    self.assertIn("next: sinew train job.yaml", done.stdout)
                    self.assertIn("reason", done.stdout)
                    said = done.stdout
                else:
                    self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                    self.assertNotIn("next: sinew train", done.stdout)
                    said = done.stderr
                    self.assertIn(f"[{table.error}]", said.splitlines()[0])
                    self.assertTrue(said.splitlines()[1].strip().startswith("try: "), said)
                for phrase in table.says:
                    self.assertIn(phrase, said)

    def test_every_column_is_in_the_table_of_columns(self):
        table = next(one for one in TABLES if one.name == "missing.csv")
        _, done = self.init(table)
        lines = [line.split() for line in done.stdout.splitlines()]
        kinds = {words[0]: words[1:] for words in lines if len(words) > 1 and words[0] in ("age", "size", "weight", "kind")}
        self.assertEqual({name: words[0] for name, words in kinds.items()},
                         {"age": "number", "size": "number", "weight": "number", "kind": "target"})
        self.assertGreater(int(kinds["age"][1]), 10, "the number of missing values")


if __name__ == "__main__":
    unittest.main()
