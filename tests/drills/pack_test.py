"""Packs images into tars, reads the tars with other programs, and trains with them: the digests must not change."""
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import copies_test
import sinew_process as sp

REST = """
model: {name: cnn, channels: [4], dropout: 0.1}
trainer: {max_duration: 30st, batch_size: 30, shards: 6, precision: fp32, eval_interval: 10st}
optimizer: {name: adamw, lr: 0.01}
"""


class Pack(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        copies_test.write_images(self.path / "images")
        self.job = self.write_job("job", f"""data:
  format: image_folder
  train: {{path: {self.path}/images}}
  split: {{val: 0.2, test: 0.1}}
  on_corrupt: skip
  image: {{channels: 1, size: [8, 8]}}
  augment: {{flip: 0.5}}
""")

    def write_job(self, name, data):
        path = self.path / f"{name}.yaml"
        path.write_text(f"name: {name}\n{data}{REST}")
        return path

    def pack(self, name, *words):
        """Returns the job that the command proposes."""
        said = sp.run("data", "pack", self.job, self.path / name, *words, check=0).stdout
        return self.write_job(name, said[said.index("data:\n"):])

    def train(self, job, name):
        run = self.path / "runs" / name
        sp.run("train", job, "--run-dir", run, "--ledger", check=0)
        return sp.digests(run)

    def test_a_training_with_the_packed_data_has_the_same_digests(self):
        calm = self.train(self.job, "calm")
        self.assertEqual(len(calm), 30)
        self.assertEqual(self.train(self.pack("encoded"), "encoded"), calm)
        self.assertEqual(self.train(self.pack("decoded", "--decode"), "decoded"), calm, "the size is that of the images")
        (self.path / "encoded/pack.index").unlink()
        self.assertEqual(self.train(self.path / "encoded.yaml", "scanned"), calm)

    def test_other_programs_read_the_tars(self):
        self.pack("out", "--shard-size", "1MiB")
        groups = collections.defaultdict(dict)
        for path in sorted((self.path / "out").glob("*.tar")):
            listed = subprocess.run(["tar", "--list", "--file", path], capture_output=True, text=True, check=True)
            self.assertEqual(listed.stderr, "")
            with tarfile.open(path) as tar:
                self.assertEqual(tar.getnames(), listed.stdout.split())
                for member in tar:
                    self.assertTrue(member.isreg())
                    # WebDataset divides names by this expression.
                    key, ending = re.fullmatch(r"((?:.*/|)[^.]+)[.]([^/]*)", member.name).groups()
                    groups[path.name.split("-")[0], key][ending] = tar.extractfile(member).read()
        self.assertEqual(len(groups), 2 * copies_test.COUNT)
        for (split, key), sample in groups.items():
            self.assertIn(split, ("train", "val", "test"))
            self.assertEqual(sample["png"], (self.path / "images" / f"{key}.png").read_bytes())
            self.assertEqual(int(sample["cls"]), int(key[len("class")]))

    def test_tars_of_other_programs_are_read(self):
        tars = self.path / "tars"
        tars.mkdir()
        folder = shutil.copytree(self.path / "images", self.path / "long" / ("x" * 90))
        for image in folder.rglob("*.png"):
            image.with_suffix(".cls").write_text(image.parent.name[len("class"):] + "\n")
        for form in ("gnu", "posix", "ustar"):
            subprocess.run(["tar", f"--format={form}", "--sort=name", "-cf", tars / f"{form}.tar", "-C", self.path / "long", "."], check=True)
        with tarfile.open(tars / "python.tar", "w") as tar:
            tar.add(self.path / "long", arcname="long")
        for tar in sorted(tars.iterdir()):
            job = self.write_job("tars", f"data: {{train: {{path: {tar}}}, on_corrupt: skip, image: {{channels: 1}}}}")
            digests = self.train(job, tar.name)
            self.assertEqual(len(digests), 30, tar)

    def test_an_interrupted_pack_leaves_no_folder_that_looks_complete(self):
        process = sp.start("data", "pack", self.job, self.path / "cut")
        sp.wait_for(lambda: (self.path / "cut.packing").exists() or (self.path / "cut").exists(), 60, 0.0005)
        process.kill()
        process.wait(60)
        process.stderr.close()
        if (self.path / "cut").exists():  # it was faster than the signal
            self.assertTrue((self.path / "cut/pack.index").exists())
            return
        refused = sp.run("data", "pack", self.job, self.path / "cut")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("cut.packing", refused.stderr)

    def test_what_is_not_packed_is_refused(self):
        table = self.path / "t.csv"
        table.write_text("a,y\n1,2\n3,4\n")
        job = self.write_job("table", f"data: {{train: {{path: {table}}}, columns: {{target: y}}}}")
        refused = sp.run("data", "pack", job, self.path / "out")
        self.assertIn("needs no packing", refused.stderr)
        refused = sp.run("data", "pack", self.job, self.path / "out", "--shard-size", "many")
        self.assertIn("--shard-size many", refused.stderr)
        self.assertFalse((self.path / "out").exists())


if __name__ == "__main__":
    unittest.main()
