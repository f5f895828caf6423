"""Trains `model: tabular` as `sinew init` writes it, with one worker and with three. Every step must have the same digest."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sinew_process as sp

ROWS = 300


def write_table(path, regression):
    state, lines = 12345, ["size,town,side,y"]
    for i in range(ROWS):
        state = (1664525 * state + 1013904223) % 2**32
        size, town, side = (state >> 8) % 1000 / 100, (state >> 16) % 12, (state >> 24) % 2
        value = size * (1 + side) + town
        y = f"{value:.2f}" if regression else "abc"[int(value) % 3]
        lines.append(f"{size if i % 17 else ''},t{town},{'left' if side else 'right'},{y}")
    path.write_text("\n".join(lines) + "\n")


class Tabular(unittest.TestCase):
    def test_three_workers_equal_one(self):
        for regression in (False, True):
            with self.subTest(regression=regression), tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                write_table(folder / "table.csv", regression)
                sp.run("init", folder / "table.csv", "--output", folder / "job.yaml", check=0)
                self.assertIn("name: tabular", (folder / "job.yaml").read_text())
                digests = []
                for workers in (1, 3):
                    run = folder / str(workers)
                    sp.run("train", folder / "job.yaml", "trainer.max_duration=24ep", "trainer.batch_size=96",
                           "trainer.drop_last=false", "--workers", workers, "--ledger", "--run-dir", run, check=0)
                    digests.append(sp.digests(run))
                self.assertEqual(len(digests[0]), 24 * 3)
                self.assertEqual(digests[0], digests[1])
                evaluated = sp.run("eval", folder / "3", check=0).stdout
                self.assertIn("accuracy" if not regression else "rmse", evaluated)


if __name__ == "__main__":
    unittest.main()
