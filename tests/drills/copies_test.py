"""Trains on images. One worker's copy of them is damaged. The ledger must equal that of one worker with good copies."""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sinew_process as sp

PATIENCE = 240  # seconds; for a crowded machine
STEPS = 60
COUNT = 150  # images of each class; the digest of the data covers the content of 64 files of a split

# Gives a process a damaged copy of each file whose name ends in "_odd.png": the file beside it that ends in ".damaged".
OTHER_FILES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
static const char* copy_of(const char* path, char* other, size_t size) {
  size_t length = strlen(path);
  if (length < 8 || strcmp(path + length - 8, "_odd.png") != 0) return path;
  snprintf(other, size, "%s.damaged", path);
  return other;
}
#define OPEN(name)                                                           \\
  int name(const char* path, int flags, ...) {                               \\
    char other[4096];                                                        \\
    va_list more;                                                            \\
    va_start(more, flags);                                                   \\
    mode_t mode = va_arg(more, mode_t);                                      \\
    va_end(more);                                                            \\
    int (*real)(const char*, int, ...) = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, #name); \\
    return real(copy_of(path, other, sizeof other), flags, mode);            \\
  }
OPEN(open)
OPEN(open64)
"""


def png(pixels):
    """An 8x8 grey image."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    rows = b"".join(b"\0" + bytes(pixels[8 * y:8 * y + 8]) for y in range(8))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows, 0)) + chunk(b"IEND", b""))


def write_images(folder):
    """Writes images of two classes. One image does not decode. Beside another one lies a damaged copy of it."""
    state = 1
    for label in (0, 1):
        (folder / f"class{label}").mkdir(parents=True)
        for number in range(COUNT):
            pixels = []
            for place in range(64):
                state = (1664525 * state + 1013904223) % 2**32
                pixels.append((100 if place % 2 == label else 0) + (state >> 24) % 90)
            name = folder / f"class{label}" / f"{number:03}.png"
            name.write_bytes(png(pixels))
    torn = folder / "class0" / "004.png"
    torn.write_bytes(torn.read_bytes()[:-30] + bytes(30))
    good = folder / "class1" / "001.png"
    odd = good.rename(good.with_name("001_odd.png"))
    damaged = bytearray(odd.read_bytes())
    damaged[-40] ^= 0x55
    pathlib.Path(f"{odd}.damaged").write_bytes(damaged)


class Copies(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        write_images(self.path / "images")
        self.job = self.path / "job.yaml"
        self.job.write_text(f"""
name: copies
model: {{name: mlp, hidden: [16]}}
data: {{format: image_folder, train: {{path: {self.path}/images}}, on_corrupt: skip, normalize: none, image: {{channels: 1, size: [8, 8]}}}}
trainer: {{max_duration: {STEPS}st, batch_size: 30, shards: 6, precision: fp32}}
optimizer: {{name: sgd, lr: 0.05}}
checkpoint: {{interval: 10st}}
""")
        source, self.library = self.path / "open.c", self.path / "libfiles.so"
        source.write_text(OTHER_FILES)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.library, source, "-ldl"], check=True)
        sp.run("train", self.job, "--run-dir", self.path / "calm", "--ledger", check=0)
        self.calm = sp.digests(self.path / "calm")

    def start(self, *words, **variables):
        return sp.launch(self, self.path / "log", *words, **variables)

    def said(self):
        return (self.path / "log").read_text()[-6000:]

    def events(self, directory):
        return [json.loads(line) for line in (directory / "log.jsonl").read_text().splitlines()]

    def test_the_damaged_copy_has_an_effect(self):
        sp.run("train", self.job, "--run-dir", self.path / "damaged", "--ledger", check=0, env={"LD_PRELOAD": str(self.library)})
        self.assertNotEqual(sp.digests(self.path / "damaged"), self.calm)

    def test_a_worker_with_a_damaged_copy_leaves_and_the_others_use_the_sample(self):
        directory = self.path / "group"
        process = self.start("train", self.job, "--run-dir", directory, "--ledger", "--workers", "2", SINEW_PACE="400")
        self.assertTrue(sp.wait_for(lambda: len(sp.computing(directory)) == 2, PATIENCE), self.said())
        joined = self.start("join", directory, SINEW_PACE="300", LD_PRELOAD=str(self.library))
        self.assertTrue(sp.wait_for(lambda: process.poll() is not None or len(sp.computing(directory)) == 3, PATIENCE), self.said())
        self.assertEqual(process.wait(PATIENCE), 0, self.said())
        joined.wait(PATIENCE)
        self.assertEqual(sp.digests(directory), self.calm)
        left_out = [line["text"] for line in self.events(directory) if line["event"] == "left_out"]
        self.assertEqual(len(left_out), 1, left_out)
        self.assertIn("class0/004.png", left_out[0])
        damaged = [line["text"] for line in self.events(directory) if line["event"] == "damaged_copy"]
        self.assertTrue(damaged, self.said())
        self.assertIn("class1/001_odd.png", damaged[0])

    def test_a_checkpoint_keeps_what_is_left_out(self):
        states = list((self.path / "calm/checkpoints").glob("step-*/state.json"))
        self.assertTrue(states)
        for state in states:
            self.assertEqual(len(json.loads(state.read_text())["left_out"]["train"]), 1)


if __name__ == "__main__":
    unittest.main()
