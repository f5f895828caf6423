"""Disturbs trainings of TorchScript modules and C++ libraries, with dropout and batch norm inside, on 2 and 3 workers
with `sinew chaos`. Every step must have the digest of the undisturbed run. Trained models must open in stock PyTorch,
and a library that crashes must count as a dead worker."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import chaos_test
import sinew_process as sp

EXAMPLE = sp.ROOT / "examples" / "cpp-module"
STEPS = 1000
CRASHING = """#include <fcntl.h>
#include <sinew/library.h>
#include <csignal>
struct Net : torch::nn::Module {
  explicit Net(const sinew::library::About& about)
      : once(about.options.at("once")), head(register_module("head", torch::nn::Linear(64, about.outputs))) {}
  torch::Tensor forward(const torch::Tensor& x) {  // the first who gets here makes the file, and dies
    if (is_training() && ++calls == 30 && open(once.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600) >= 0) std::raise(SIGSEGV);
    return head(x.flatten(1));
  }
  std::string once;
  int calls = 0;
  torch::nn::Linear head;
};
SINEW_LIBRARY(library) { library.model = sinew::library::model<Net>(); }
"""


def build_library(source, build):
    """Builds the library of the template project as its README says."""
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    subprocess.run(["cmake", "-S", source, "-B", build, f"-DSINEW_DIR={sp.ROOT}", *launcher], check=True,
                   stdout=subprocess.DEVNULL, timeout=300)
    subprocess.run(["cmake", "--build", build], check=True, stdout=subprocess.DEVNULL, timeout=900)
    return build / "libnet.so"


def script_module():
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.Dropout2d(0.1))
            self.head = nn.Linear(6 * 64, 5)

        def forward(self, x):
            return self.head(self.body(x).flatten(1))

    torch.manual_seed(1)
    return Net().train()


class OwnModels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        warnings.filterwarnings("ignore")
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        chaos_test.write_data(cls.path, 6000)
        import torch
        torch.jit.script(script_module()).save(str(cls.path / "net.pt"))
        cls.library = build_library(EXAMPLE, cls.path / "library")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def job(self, name, model, steps=STEPS, more=""):
        path = self.path / f"{name}.yaml"
        path.write_text(f"""name: {name}
model: {model}
data:
  format: idx
  train: {{images: {self.path}/images, labels: {self.path}/labels}}
  split: {{val: 0.1}}
trainer: {{max_duration: {steps}st, batch_size: 32, shards: 7, eval_interval: 60st, grad_clip_norm: 1.0}}
optimizer: {{name: adamw, lr: 3.0e-3, weight_decay: 0.01}}
checkpoint: {{interval: 25st, keep: 2}}
logging: {{interval: 50st}}
{more}""")
        return path

    def assert_whoever_computes(self, name, job):
        calm = self.path / f"calm-{name}"
        sp.run("train", job, "workers.max=1", "--run-dir", calm, "--ledger", timeout=900, check=0)
        for workers in (2, 3):
            with self.subTest(workers=workers):
                done = sp.run("chaos", job, "--seed", workers, "--events", 3, "--kill-every", "300ms", "--workers",
                              workers, "--against", calm, "--run-dir", self.path / f"{name}-{workers}", timeout=900)
                self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}")
                self.assertIn(f"the same to the last bit: {STEPS} of {STEPS} steps", done.stdout)
        return calm

    def test_torchscript(self):
        import torch
        job = self.job("script", f"{{name: torchscript, file: {self.path}/net.pt}}")
        calm = self.assert_whoever_computes("script", job)
        back, fresh = torch.jit.load(str(calm / "model/model.pt")), torch.jit.load(str(self.path / "net.pt"))
        weights = dict(back.named_parameters())
        self.assertTrue(any(not torch.equal(value, weights[name]) for name, value in fresh.named_parameters()))
        eager = script_module()
        eager.load_state_dict(back.state_dict())
        x = torch.randn(5, 1, 8, 8)
        for mode in (False, True):
            back.train(mode), eager.train(mode)
            torch.manual_seed(2)
            expected = eager(x)
            torch.manual_seed(2)
            self.assertTrue(torch.equal(back(x), expected), f"training={mode}")
        # Evaluation needs only the model directory.
        (self.path / "net.pt").rename(self.path / "away.pt")
        sp.run("eval", calm / "model", f"test.images={self.path}/images", f"test.labels={self.path}/labels", check=0)
        (self.path / "away.pt").rename(self.path / "net.pt")

    def test_a_library(self):
        model = f"{{name: library, file: {self.library}, options: [width=24, depth=2, dropout=0.2]}}"
        job = self.job("library", model, more="loss: library\n")
        calm = self.assert_whoever_computes("library", job)
        self.assertTrue((calm / "model/model.so").is_file())

    def test_a_resume_refuses_another_loss_library(self):
        loss, run = self.path / "loss.so", self.path / "loss"
        shutil.copy(self.library, loss)
        job = self.job("loss", "{name: mlp, hidden: [8]}", more=f"loss: {{name: library, library: {loss}}}\n", steps=40)
        sp.run("train", job, "budget.training=20st", "--run-dir", run, check=3)
        with open(loss, "ab") as file:
            file.write(b"\0")  # the loader ignores it
        done = sp.run("resume", run, check=1)
        self.assertIn("[TRAIN_MODEL_CHANGED]", done.stderr)
        shutil.copy(self.library, loss)
        sp.run("resume", run, check=3)  # the budget is used up

    def test_a_library_that_crashes_counts_as_a_dead_worker(self):
        source = self.path / "crashing"
        shutil.copytree(EXAMPLE, source)
        (source / "net.cpp").write_text(CRASHING)
        crashing = build_library(source, self.path / "crashing-build")
        job = self.job("crash", f"{{name: library, file: {crashing}, options: ['once={self.path}/once']}}", steps=60)
        done = sp.run("train", job, "--workers", 2, "--ledger", "--run-dir", self.path / "crash", timeout=300, check=0)
        self.assertIn("was killed by SIGSEGV", done.stderr)
        self.assertTrue((self.path / "once").exists())
        sp.run("train", job, "workers.max=1", "--ledger", "--run-dir", self.path / "calm-crash", timeout=300, check=0)
        self.assertEqual(sp.digests(self.path / "crash"), sp.digests(self.path / "calm-crash"))

    def test_a_library_for_another_libtorch_is_refused(self):
        old = self.path / "old.so"
        import torch
        version = torch.__version__.split("+")[0].encode()
        old.write_bytes(self.library.read_bytes().replace(b"\ntorch " + version, b"\ntorch 1" + version[1:], 1))
        done = sp.run("train", self.job("old", f"{{name: library, file: {old}}}"), "--run-dir", self.path / "old")
        self.assertEqual(done.returncode, 1)
        self.assertIn("[LIBRARY_INCOMPATIBLE]", done.stderr)
        self.assertIn("it was built for torch 1", done.stderr)

    def test_the_example_job_learns_and_predicts(self):
        text = (EXAMPLE / "job.yaml").read_text().replace("build/cpp-module/libnet.so", str(self.library))
        job = self.path / "spiral.yaml"
        job.write_text(text.replace("examples/cpp-module/spiral.txt", str(EXAMPLE / "spiral.txt")))
        run = self.path / "spiral"
        sp.run("train", job, "--run-dir", run, timeout=300, check=0)
        self.assertGreater(sp.report(run)["last"]["val/accuracy"], 0.6)  # a guess is right in one of three cases
        done = sp.run("predict", run, EXAMPLE / "spiral.txt", check=0)
        self.assertEqual(len(done.stdout.splitlines()), 601)


if __name__ == "__main__":
    unittest.main()
