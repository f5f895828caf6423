"""Shows that each search for faults finds the fault that it is for, and none on a good screen."""
import unittest

import faults

GOOD = ["digits: mlp, 613 parameters; fp32 on cpu", "step 20:  train/loss 1.8050  val/loss 1.4606  (best)",
        "step  60/60  epoch 6.0/6 [##########]  val/accuracy 1.000  val/loss 2.84e-06  18.2k samples/s  eta 0s",
        "all 60 steps are done; 60 steps, 1800 samples in 1 s"]


class Faults(unittest.TestCase):
    def test_a_good_screen_has_none(self):
        self.assertEqual(faults.too_wide(GOOD, 110), [])
        self.assertEqual(faults.remainders(GOOD), [])
        self.assertEqual(faults.glued(GOOD), [])
        self.assertEqual(len(faults.progress_lines(GOOD)), 1)
        self.assertEqual(faults.missing("digits: mlp, 613 parameters; fp32 on cpu", GOOD, False), [])
        self.assertEqual(faults.missing("a b c", ["a", "  b c"], True), [])
        self.assertEqual(faults.controls("a\r\nb – …\n"), [])

    def test_wide_lines(self):
        self.assertEqual(faults.too_wide(["averylongword", "  sinew train job.yaml a=1"], 10), [])
        self.assertEqual(len(faults.too_wide(["averylongword b", "sinew train: no such file", "to go on: sinew resume last"], 10)), 3)

    def test_remainders_of_a_progress_line(self):
        for line in ("step  7/100  train/loss 2.121sinew: worker 1 was killed", "step 98/100  train/losstep 100/100  val/loss 0.6  eta 0s",
                     "all 60 steps are done  eta 3s", "step 7/100  train/loss 2.1  eta 3m^C", "step 20:  val/loss 1.4606  (best)amples/s  eta 1s"):
            self.assertEqual(len(faults.remainders([line])), 1, line)
        self.assertEqual(len(faults.glued(["step  7/100  train/loss 2.121sinew: worker 1 was killed"])), 1)

    def test_an_early_eta(self):
        self.assertEqual(len(faults.early_eta("\rstep 1/9  train/loss 2.1  eta 3s\x1b[K\rstep 2/9  train/loss 2.1")), 1)
        self.assertEqual(faults.early_eta("\rstep 1/9  train/loss 2.1\x1b[K\rstep 2/9  train/loss 2.1  eta 3s"), [])

    def test_numbers(self):
        self.assertEqual(faults.unreadable_numbers(["optimizer.lr=0.0001484  val/loss 1.8821e-06", "12345.67"]), [])
        self.assertEqual(len(faults.unreadable_numbers(["eta_seconds 3241.712924661797"])), 1)

    def test_control_characters(self):
        for text in ("\x1b[2mstep\x1b[0m\n", "\rstep 1/9", "a\x07\n"):
            self.assertEqual(len(faults.controls(text)), 1, text)

    def test_messages_that_are_not_whole(self):
        for rows in (["all is do", "ne"], ["all is done  eta 3s"], ["step 1/9all is done"], []):
            self.assertEqual(len(faults.missing("all is done", rows, True)), 1, rows)


if __name__ == "__main__":
    unittest.main()
