"""Trains in the sandbox. Confined workers must give the same bits as others, and the code of a hostile model must reach
nothing outside of its run: no file, no program, no server and no later command."""
import os
import pathlib
import shutil
import socket
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import own_models_test as own
import sinew_process as sp

STEPS = 40
# A model that trains as it should, and tries everything else when it is made. It notes in `notes` what worked.
HOSTILE = r"""#include <arpa/inet.h>
#include <fcntl.h>
#include <sinew/library.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cstdio>
#include <fstream>
#include <mutex>
struct Net : torch::nn::Module {
  explicit Net(const sinew::library::About& about) : head(register_module("head", torch::nn::Linear(64, about.outputs))) {
    static std::once_flag once;
    const auto get = [&](const char* name) { return about.options.at(name); };
    std::call_once(once, [&] { attack(get("run"), get("outside"), static_cast<uint16_t>(about.number("port", 0))); });
  }
  static void attack(const std::string& run, const std::string& outside, uint16_t port) {
    std::ofstream notes(run + "/notes");
    const auto note = [&](const char* what, bool worked) { notes << what << (worked ? " worked\n" : " failed\n"); };
    note("read", open((outside + "/secret").c_str(), O_RDONLY) >= 0);
    note("write", open((outside + "/secret").c_str(), O_WRONLY) >= 0);
    note("create", open((outside + "/new").c_str(), O_WRONLY | O_CREAT, 0600) >= 0);
    note("remove", unlink((outside + "/secret").c_str()) == 0);
    const int tcp = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    note("connect", tcp >= 0 && (connect(tcp, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 || errno == EINPROGRESS));
    const pid_t child = fork();
    if (child == 0) _exit(0);
    note("program", child > 0);
    note("mark", rmdir((run + "/trained-in-sandbox").c_str()) == 0 ||
                     rename((run + "/trained-in-sandbox").c_str(), (run + "/x").c_str()) == 0);
    note("link", symlink(outside.c_str(), (run + "/out").c_str()) == 0);
    notes.close();
  }
  torch::Tensor forward(const torch::Tensor& x) { return head(x.flatten(1)); }
  torch::nn::Linear head{nullptr};
};
SINEW_LIBRARY(library) { library.model = sinew::library::model<Net>(); }
"""
NOTES = {"read": "worked", "write": "failed", "create": "failed", "remove": "failed", "connect": "failed", "program": "failed",
         "mark": "failed", "link": "failed"}


class Sandbox(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.job = sp.write_job(self.path, STEPS)

    def train(self, name, *words, check=0):
        done = sp.run("train", self.job, "--ledger", "--run-dir", self.path / name, *words, check=check)
        return done.stderr

    def test_the_bits_are_the_same(self):
        self.assertNotIn("sandbox", self.train("plain"))
        plain = sp.digests(self.path / "plain")
        self.assertEqual(len(plain), STEPS)
        said = self.train("alone", "--sandbox")
        self.assertRegex(said, r"sandbox: seccomp, Landlock \(version \d+\); writes: only \S*alone; network: none;")
        said = self.train("group", "--sandbox", "--workers", 2)
        self.assertIn("network: only processes of this run on this machine;", said)
        for name in ("alone", "group"):
            self.assertEqual(sp.digests(self.path / name), plain, name)
            self.assertEqual((self.path / name / "model/model.safetensors").read_bytes(),
                             (self.path / "plain/model/model.safetensors").read_bytes())

    def test_a_killed_worker_is_replaced_and_a_stopped_run_resumes_confined(self):
        self.train("plain", "trainer.max_duration=400st")
        run = self.path / "run"
        process = sp.start("train", self.job, "--ledger", "--run-dir", run, "--sandbox", "--workers", 2, "trainer.max_duration=400st")
        self.addCleanup(lambda: process.poll() is None and sp.kill(process))
        self.assertTrue(sp.wait_for(lambda: len(sp.computing(run)) == 2))
        os.kill(sp.computing(run)[0], 9)
        step = sp.step_of(run)
        self.assertTrue(sp.wait_for(lambda: sp.step_of(run) > step + 10))
        process.terminate()
        process.wait(60)
        process.stderr.close()
        said = sp.run("resume", run, "--ledger", "--workers", 2, check=0).stderr
        self.assertIn("the sandbox is on, because", said)
        self.assertEqual(sp.digests(run), sp.digests(self.path / "plain"))

    def test_evaluation_and_prediction_write_their_results(self):
        self.train("run")
        images = self.path / "train-images"
        for name, words in (("open", ["--no-sandbox"]), ("confined", ["--sandbox"])):
            sp.run("predict", self.path / "run", images, "-o", self.path / f"{name}.csv", *words, check=0)
            sp.run("eval", self.path / "run", "--split", "val", *words, check=0)
            (self.path / "run/eval-val.json").rename(self.path / f"{name}.json")
        for suffix in (".csv", ".json"):
            self.assertEqual((self.path / f"confined{suffix}").read_bytes(), (self.path / f"open{suffix}").read_bytes())
        self.assertFalse((self.path / "run/trained-in-sandbox").exists())  # evaluation must not change the run

    def test_what_a_confined_run_wrote_is_used_confined(self):
        self.train("run", "--sandbox")
        for words in (("eval", self.path / "run", "--split", "val"), ("resume", self.path / "run")):
            self.assertIn("the sandbox is on, because", sp.run(*words, check=0).stderr)
        self.assertNotIn("sandbox", sp.run("eval", self.path / "run", "--split", "val", "--no-sandbox", check=0).stderr)

    def test_a_repetition_is_confined_if_the_run_used_the_files_of_a_confined_run(self):
        self.train("confined", "--sandbox")
        self.train("plain", "--no-sandbox", f"model.init_from={self.path}/confined/model")
        self.assertFalse((self.path / "plain/trained-in-sandbox").exists())
        said = sp.run("repro", self.path / "plain", "--run-dir", self.path / "again", check=0).stderr
        self.assertIn("the sandbox is on, because", said)

    def test_a_confined_run_gets_no_more_workers_than_it_began_with(self):
        run = self.path / "run"
        process = sp.start("train", self.job, "--run-dir", run, "--sandbox", "--workers", 2, "trainer.max_duration=100000st")
        self.addCleanup(lambda: process.poll() is None and sp.kill(process))
        self.assertTrue(sp.wait_for(lambda: len(sp.computing(run)) == 2))
        self.assertIn("at most 2 workers", sp.run("scale", run, 3, check=1).stderr)
        sp.run("scale", run, 1, check=0)
        self.assertTrue(sp.wait_for(lambda: len(sp.computing(run)) == 1))
        sp.run("scale", run, 2, check=0)
        self.assertTrue(sp.wait_for(lambda: len(sp.computing(run)) == 2))

    def test_contradictions_are_refused(self):
        for words, code in ((("--sandbox", "--no-sandbox"), "OPTION_INVALID"), (("--sandbox", "--sandbox-hosts", "a.b"), "OPTION_INVALID"),
                            (("--sandbox", f"checkpoint.mirror={self.path}/mirror"), "SANDBOX_MIRROR")):
            self.assertIn(f"[{code}]", self.train("no", *words, check=2))
        self.assertFalse((self.path / "no").exists())

    def test_a_command_in_a_confined_run_is_refused(self):
        self.train("run", "--sandbox")
        resolved = self.path / "run/resolved.yaml"
        resolved.write_text(f"name: drill\ncommand: [touch, {self.path}/touched]\n")
        for words in ((), ("--no-sandbox",)):
            self.assertIn("[SANDBOX_COMMAND]", sp.run("resume", self.path / "run", *words, check=1).stderr)
            self.assertIn("[SANDBOX_COMMAND]", sp.run("train", resolved, "--run-dir", self.path / "new", *words, check=1).stderr)
        self.assertIn("[SANDBOX_COMMAND]", sp.run("tune", resolved, "--study", self.path / "new", check=1).stderr)
        self.assertFalse((self.path / "new").exists())
        self.assertFalse((self.path / "touched").exists())


class HostileLibrary(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        source = cls.path / "source"
        shutil.copytree(own.EXAMPLE, source)
        (source / "net.cpp").write_text(HOSTILE)
        cls.library = own.build_library(source, cls.path / "build")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.server.close)
        self.outside = self.path / "outside"
        self.outside.mkdir(exist_ok=True)
        (self.outside / "secret").write_text("keep")

    def notes(self, name, *words):
        job, run = sp.write_job(self.path, STEPS), self.path / name
        options = f"[run={run}, outside={self.outside}, port={self.server.getsockname()[1]}]"
        text = job.read_text().replace("{name: cnn, channels: [4, 8], norm: batch, dropout: 0.2}",
                                       f"{{name: library, file: {self.library}, options: {options}}}")
        job.write_text(text)
        sp.run("train", job, "--ledger", "--run-dir", run, *words, check=0)
        return dict(line.split() for line in (run / "notes").read_text().splitlines())

    def test_a_hostile_library_trains_and_reaches_nothing(self):
        for name, words in (("alone", ()), ("group", ("--workers", 2))):
            with self.subTest(name):
                self.assertEqual(self.notes(name, "--sandbox", *words), NOTES)
                self.assertEqual((self.outside / "secret").read_text(), "keep")
                self.assertFalse((self.outside / "new").exists())
                self.assertEqual(len(sp.digests(self.path / name)), STEPS)
        self.assertEqual(sp.digests(self.path / "alone"), sp.digests(self.path / "group"))

    # Shows that the test above can fail.
    def test_without_the_sandbox_it_reaches_everything(self):
        notes = self.notes("open")
        self.assertEqual({what: how for what, how in notes.items() if what != "mark"},
                         {what: "worked" for what in NOTES if what != "mark"})


if __name__ == "__main__":
    unittest.main()
