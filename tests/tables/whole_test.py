"""From messy tables to predictions. SINEW_WORKER names `sinew-worker`."""
import csv
import unittest

from messy import all_messy
from place import Messy

TABLES = all_messy()


class Whole(Messy):
    def run_whole(self, table):
        path, done = self.init(table)
        if table.options:
            self.assertEqual(done.returncode, 1, "the table needs help")
            (self.folder / "job.yaml").write_text(f"name: table\ndata:\n  train: {path.name}\n  format: csv\n{table.options}"
                                                  "model: {name: mlp, hidden: [8]}\n")
        done = self.sinew("train", "job.yaml", "--run-dir", "run", "trainer.max_duration=2st", "trainer.lanes=1",
                          "model.hidden=[8]")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for phrase in table.says:
            self.assertIn(phrase, done.stdout)
        done = self.sinew("predict", "run", path.name, "-o", "out.csv")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(self.folder / "out.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file)), done.stderr

    def test_some_tables_to_the_end(self):
        expected = {"folder": 90, "rare.csv": 400}
        for table in TABLES:
            if not table.whole:
                continue
            with self.subTest(table.name):
                self.setUp()
                predictions, _ = self.run_whole(table)
                self.assertEqual(len(predictions), expected.get(table.name, 60))
                self.assertTrue(all(all(row.values()) for row in predictions), predictions[:3])

    def test_what_prediction_leaves_out_is_said(self):
        table = next(one for one in TABLES if one.name == "rare.csv")
        self.run_whole(table)
        (self.folder / "new.csv").write_text("weight,town,size\n3,paris,100\n3,rome,\n")
        done = self.sinew("predict", "run", "new.csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("column 'town': 1 value is rare in the training rows or new, the first: 'paris'", done.stderr)
        self.assertIn("column 'size': 1 value is missing, but none in the training rows", done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 3)
        (self.folder / "new.csv").write_text("weight,town,size\n3,rome,1oo\n")
        done = self.sinew("predict", "run", "new.csv")
        self.assertEqual(done.returncode, 1)
        self.assertIn("new.csv:2:8: column 'size' holds '1oo', which is not a number [DATA_BAD_CELL]", done.stderr)
        self.assertIn("delete its row", done.stderr)
        self.assertNotIn("on_corrupt", done.stderr, "predict takes no options of the data")


if __name__ == "__main__":
    unittest.main()
