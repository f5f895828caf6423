"""Exports programs of the zoo, and lets zoo_check compare them with eager PyTorch: some programs, or in the long tier
(SINEW_LONG=1, some minutes) all of them."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
SOME = """mlp_relu mlp_batchnorm_decomposed mlp_batchnorm_cumulative cnn_lenet cnn_groupnorm cnn_instancenorm_tracked
resnet_basic mobilenet_v2_blocks unet rnn_lstm_bidirectional rnn_gru_bidirectional bert_classifier vit gpt
gpt_dynamic_length llama swin_windows s4_fft neural_ode low_precision_blocks gpt_dropout
lstm_dropout cnn_dropout""".split()
AT_LEAST = 0.95  # the share of programs that must agree; the others print why not


class Zoo(unittest.TestCase):
    def test_programs_agree_with_eager_pytorch(self):
        wanted = [] if os.environ.get("SINEW_LONG") else SOME
        with tempfile.TemporaryDirectory() as zoo:
            made = subprocess.run([sys.executable, HERE / "make_zoo.py", zoo, *wanted], capture_output=True, text=True,
                                  timeout=3000)
            self.assertEqual(made.returncode, 0, made.stdout[-2000:] + made.stderr[-2000:])
            done = subprocess.run([os.environ["ZOO_CHECK"], zoo], capture_output=True, text=True, timeout=3000)
        print(done.stdout, file=sys.stderr)
        lines = done.stdout.splitlines()
        failed = [line for line in lines if "FAILED" in line]
        self.assertIn("programs agree with eager PyTorch", lines[-1] if lines else done.stderr)
        self.assertGreaterEqual(len(lines) - 1, len(SOME))
        self.assertLessEqual(len(failed), (1 - AT_LEAST) * (len(lines) - 1), "\n".join(failed))
        if wanted:
            self.assertEqual(failed, [])


if __name__ == "__main__":
    unittest.main()
