"""From messy tables to predictions. SINEW_WORKER names `sinew-worker`."""
import csv
import json
import os
import pathlib
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


@unittest.skipUnless(os.environ.get("SINEW_DATA"), "needs the public data sets, a folder SINEW_DATA names")
class RealTables(Messy):
    def leak(self, name, target, *words):
        """Returns the exit code of `sinew check` and what it found about columns that have the answer."""
        table = pathlib.Path(os.environ["SINEW_DATA"]) / "tabular" / f"{name}.csv"
        done = self.sinew("init", table, "--target", target, "--force")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = self.sinew("check", "job.yaml", *words, "--time", "5s", "--json")
        finding = next(one for one in json.loads(done.stdout)["checks"] if one["check"] == "leak")
        return done.returncode, finding

    def test_check_notices_the_answer_among_the_columns(self):
        code, finding = self.leak("titanic", "survived")
        self.assertEqual((code, finding["verdict"], finding["cause"]), (4, "fail", "target_leak"))
        self.assertIn("'alive'", finding["what"])
        self.assertIn("data.columns.ignore", finding["hint"])
        for name, target in (("titanic", "survived"), ("penguins", "species"), ("diamonds", "price"), ("mpg", "mpg")):
            words = ["data.columns.ignore=[alive]"] if name == "titanic" else []
            with self.subTest(name):
                self.assertEqual(self.leak(name, target, *words)[1]["verdict"], "pass")


if __name__ == "__main__":
    unittest.main()
