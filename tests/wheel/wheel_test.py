"""Makes a wheel as `./dev wheel` does, installs it into a new virtual environment, and trains with it.

SINEW_BIN is the folder of the programs, SINEW_TORCH the libtorch with which they were built, and SINEW_WHEEL_PYTHON a
Python with packaging/requirements.txt. The environment sees this libtorch through links, so nothing is downloaded.
"""
import base64
import csv
import fnmatch
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("SINEW_BIN", ROOT / "build/release/bin"))
WHEEL_PYTHON = os.environ.get("SINEW_WHEEL_PYTHON", sys.executable)
TORCH = re.search(r"^TORCH=torch==(\S+)$", (ROOT / "dev").read_text(), re.MULTILINE).group(1)
VERSION = re.search(r"project\(sinew VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
FROM_TORCH = ["libtorch*.so", "libc10*.so", "libgomp*.so*"]
OF_EVERY_SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libresolv.so.2", "libgcc_s.so.1",
                   "libstdc++.so.6", "libz.so.1", "ld-linux-x86-64.so.2"}


def run(*words, check=0, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, timeout=300, **{"text": True, **options})
    if check is not None and done.returncode != check:
        raise AssertionError(f"{' '.join(map(str, words))} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done


def from_torch(name):
    return any(fnmatch.fnmatch(name, pattern) for pattern in FROM_TORCH)


def dynamic(file):
    """Returns the entries of the ELF file's dynamic section as (tag, text)."""
    return re.findall(r"\((NEEDED|RPATH|RUNPATH|SONAME)\).*\[(.*)\]", run("readelf", "-dW", file).stdout)


def is_elf(file):
    with open(file, "rb") as opened:
        return opened.read(4) == b"\x7fELF"


def write_table(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["width", "height", "kind"])
        for n in range(rows):
            writer.writerow([n % 7 + n % 3, (n * 5) % 11, ["round", "flat", "long"][n % 3]])


class Environment:
    """A virtual environment in which the tests put torch where they want it."""

    def __init__(self, folder):
        self.folder = folder
        run(sys.executable, "-m", "venv", folder)
        self.python = folder / "bin/python"
        self.site = pathlib.Path(run(self.python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))").stdout.strip())

    def pip(self, *words):
        return run(self.python, "-m", "pip", "--disable-pip-version-check", "--no-input", *words)

    def remove_torch(self):
        for path in [*self.site.glob("torch*"), *self.site.glob("elsewhere*")]:
            path.unlink() if path.is_symlink() or path.is_file() else shutil.rmtree(path)

    def place_torch(self, version=TORCH, folder=None):
        """Puts links to libtorch, and the metadata of a torch of this version, into a folder; by default beside sinew."""
        folder = folder or self.site
        info = folder / f"torch-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
        (folder / "torch").symlink_to(os.environ["SINEW_TORCH"])

    def files(self):
        """Returns the names of all files and folders but compiled Python files."""
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if "__pycache__" not in path.parts}

    def sinew(self, *words, **options):
        return run(self.folder / "bin/sinew", *words, **options)


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="sinew-wheel-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        began = time.monotonic()
        cls.wheel = cls.make_wheel("out")
        print(f"the wheel took {time.monotonic() - began:.1f} s, {cls.wheel.stat().st_size / 1e6:.1f} MB: {cls.wheel.name}", flush=True)
        with zipfile.ZipFile(cls.wheel) as archive:
            archive.extractall(cls.folder / "unpacked")
        cls.environment = Environment(cls.folder / "venv")
        cls.before = cls.environment.files()
        cls.install()

    @classmethod
    def make_wheel(cls, out):
        made = run(WHEEL_PYTHON, ROOT / "packaging/wheel.py", "--torch", TORCH, BIN, cls.folder / out)
        return pathlib.Path(made.stdout.strip())

    @classmethod
    def install(cls):
        cls.environment.pip("install", "--no-deps", "--no-index", cls.wheel)

    def setUp(self):
        self.environment.remove_torch()
        self.environment.place_torch()
        self.work = pathlib.Path(tempfile.mkdtemp(dir=self.folder))

    def elf_files(self):
        found = [path for path in sorted((self.folder / "unpacked").rglob("*")) if path.is_file() and is_elf(path)]
        self.assertGreater(len(found), 8)
        return found

    # ---- the file

    def test_metadata(self):
        info = self.folder / f"unpacked/sinew-{VERSION}.dist-info"
        metadata, tags = (info / "METADATA").read_text(), (info / "WHEEL").read_text()
        self.assertIn(f"\nVersion: {VERSION}\n", metadata)
        self.assertEqual(re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE), [f"torch=={TORCH}"])
        self.assertRegex(self.wheel.name, rf"^sinew-{re.escape(VERSION)}-py3-none-manylinux_2_\d+_x86_64\.whl$")
        self.assertEqual(re.findall(r"^Tag: (.*)$", tags, re.MULTILINE), [self.wheel.stem.removeprefix(f"sinew-{VERSION}-")])
        self.assertIn("\nRoot-Is-Purelib: false\n", tags)
        licences = {path.name for path in (info / "licenses").rglob("*.txt")}
        self.assertLessEqual({"sinew.txt", "libssl3.txt", "libpq5.txt", "libyaml-cpp0.7.txt", "libeigen3-dev.txt"}, licences)

    def test_records_name_every_file_and_its_digest(self):
        root = self.folder / "unpacked"
        with open(root / f"sinew-{VERSION}.dist-info/RECORD", newline="") as file:
            rows = list(csv.reader(file))
        self.assertEqual({row[0] for row in rows}, {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()})
        for name, digest, size in rows:
            if not name.endswith("/RECORD"):
                data = (root / name).read_bytes()
                found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, size), (f"sha256={found}", str(len(data))), name)

    def test_the_tag_is_what_the_programs_need(self):
        """`auditwheel show` knows no libraries of other packages, so this calls its function with libtorch left out."""
        script = ("import pathlib, sys\nfrom auditwheel.architecture import Architecture\nfrom auditwheel.libc import Libc\n"
                  "from auditwheel.wheel_abi import analyze_wheel_abi\n"
                  "found = analyze_wheel_abi(Libc.GLIBC, Architecture.x86_64, pathlib.Path(sys.argv[1]), frozenset(sys.argv[2:]),"
                  " disable_isa_ext_check=False, allow_graft=False)\n"
                  "print(found.overall_policy.name, sorted(found.external_refs[found.policies.lowest.name].libs))")
        name, libraries = run(WHEEL_PYTHON, "-c", script, self.wheel, *FROM_TORCH).stdout.split(maxsplit=1)
        self.assertIn(f"-{name}.whl", self.wheel.name)
        self.assertRegex(name, r"^manylinux_2_([12]\d|3[0-6])_x86_64$")

    def test_paths_are_relative_and_every_library_is_known(self):
        carried = {path.name for path in self.elf_files()}
        for file in self.elf_files():
            for tag, text in dynamic(file):
                if tag == "NEEDED":
                    self.assertTrue(text in OF_EVERY_SYSTEM or text in carried or from_torch(text), f"{file.name}: {text}")
                if tag in ("RPATH", "RUNPATH"):
                    for entry in text.split(":"):
                        self.assertRegex(entry, r"^\$ORIGIN(/|$)", file.name)
            self.assertNotIn(str(ROOT).encode() + b"/", file.read_bytes(), file.name)
        for name in carried - {"sinew", "sinew-worker", "libpq.so.5"}:
            self.assertRegex(name, r"^[\w.+-]+-[0-9a-f]{8}\.(\d+\.)?so[.\d]*$")
            self.assertNotRegex(name, r"^(libgcc_s|libstdc\+\+|libc|libm|libz|libgomp|libtorch\w*|libc10\w*)[-.]")

    def test_the_same_programs_give_the_same_bytes(self):
        self.assertEqual(self.make_wheel("again").read_bytes(), self.wheel.read_bytes())

    # ---- the launcher

    def test_version_and_help(self):
        self.assertEqual(self.environment.sinew("--version").stdout, f"sinew {VERSION}\n")
        self.assertIn(f"Version: {VERSION}\n", self.environment.pip("show", "sinew").stdout)
        expected = run(BIN / "sinew", "--help").stdout
        self.assertEqual(self.environment.sinew("--help").stdout, expected)
        self.assertEqual(run(self.environment.python, "-m", "sinew", "--help").stdout, expected)

    def test_the_program_gets_everything_as_if_it_were_started_itself(self):
        """A copy of the package has a script as its program. The script prints what a process inherits. The launcher and
        the shell must give it the same."""
        copy = self.work / "copy"
        shutil.copytree(self.environment.site / "sinew", copy / "sinew")
        self.environment.place_torch(folder=copy)
        script = copy / "sinew/bin/sinew"
        script.write_text('#!/bin/sh\nprintf "%s\\0" "$@"\ncat\ngrep Sig /proc/$$/status | grep -v SigQ\nls /proc/$$/fd\n'
                          'env | sort\nexit 7\n')
        launcher = [str(self.environment.python), "-m", "sinew"]
        words = ["a b", "", "line\nbreak", "--flag=x", b"not \xff utf-8"]
        for environment in ({}, {"LC_ALL": "C"}, {"LC_CTYPE": "C.UTF-8"}, {"LANG": "C.UTF-8"}):
            environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(copy), **environment}
            seen = [subprocess.run([*command, *words], input=b"in\0put", env=environment, capture_output=True, timeout=60, cwd=self.work)
                    for command in ([str(script)], launcher)]
            self.assertEqual([done.returncode for done in seen], [7, 7], seen[1].stderr)
            own = f"SINEW_PYTHON={self.environment.python}\n".encode()  # the launcher names the Python whose pyarrow may be used
            self.assertIn(own, seen[1].stdout)
            self.assertEqual(seen[0].stdout, seen[1].stdout.replace(own, b""))
        script.write_text("#!/bin/sh\nkill -TERM $$\n")
        self.assertEqual(subprocess.run(launcher, env=environment, timeout=60).returncode, -15)

    def test_another_torch_is_named(self):
        self.environment.remove_torch()
        self.environment.place_torch("2.12.1+cpu")
        for command in ([self.environment.folder / "bin/sinew"], [self.environment.python, "-m", "sinew"]):
            done = run(*command, "--version", check=1)
            self.assertEqual((done.stdout, done.stderr),
                             ("", f"sinew: torch 2.12.1+cpu is installed in {self.environment.site}, but this sinew needs torch {TORCH} "
                                  f"[INSTALL_OTHER_TORCH]\n  try: {self.environment.python} -m pip install torch=={TORCH}\n"))

    def test_a_missing_torch_is_named(self):
        self.environment.remove_torch()
        done = self.environment.sinew("train", "job.yaml", check=1)
        self.assertEqual((done.stdout, done.stderr),
                         ("", f"sinew: torch is not installed, but this sinew needs torch {TORCH} [INSTALL_NO_TORCH]\n"
                              f"  try: {self.environment.python} -m pip install torch=={TORCH}\n"))

    def test_an_incomplete_torch_is_named(self):
        (self.environment.site / "torch").unlink()
        (self.environment.site / "torch/lib").mkdir(parents=True)
        done = self.environment.sinew("--version", check=1)
        self.assertRegex(done.stderr, r"^sinew: torch \S+ in \S+ has no lib\S+\.so\S*, which .* \[INSTALL_OTHER_TORCH\]\n.*--force-reinstall")

    # ---- the programs

    def ledger(self, name, *words, program=None):
        run_directory = self.work / name
        run(program or self.environment.folder / "bin/sinew", "train", "job.yaml", "--run-dir", run_directory, "--ledger",
            "trainer.max_duration=6ep", *words, cwd=self.work)
        lines = (run_directory / "ledger.jsonl").read_text()
        self.assertGreater(len(lines.splitlines()), 3)
        return lines

    def begin_job(self):
        write_table(self.work / "table.csv", 240)
        self.environment.sinew("init", "table.csv", cwd=self.work)

    def test_a_table_trains_and_predicts(self):
        self.begin_job()
        one = self.ledger("one")
        self.assertEqual(self.ledger("two", "--workers", "2"), one)
        self.assertEqual(self.ledger("built", program=BIN / "sinew"), one)
        write_table(self.work / "new.csv", 30)
        done = self.environment.sinew("predict", "one", "new.csv", cwd=self.work)
        rows = list(csv.DictReader(done.stdout.splitlines()))
        self.assertEqual(len(rows), 30)
        self.assertLessEqual({row["prediction"] for row in rows}, {"round", "flat", "long"})
        # The font of pictures is in the program.
        self.environment.sinew("runs", "plot", "one", "--output", "one.png", cwd=self.work)
        self.assertTrue((self.work / "one.png").read_bytes().startswith(b"\x89PNG"))
        self.assertIn("</html>", (self.work / "one/report.html").read_text())
        # The worker loads torch's OpenMP library and the decoders of the wheel, not those of the system.
        loaded = json.loads((self.work / "one/environment.json").read_text())
        self.assertIn("build_libgomp", loaded)
        self.assertIn("build_libturbojpeg", loaded)

    def test_libraries_come_from_the_wheel_and_from_torch(self):
        site = self.environment.site
        for name in ("sinew", "sinew-worker"):
            lines = run("ldd", site / "sinew/bin" / name).stdout.splitlines()
            self.assertGreater(len(lines), 8)
            for line in lines:
                library, arrow, place = line.strip().partition(" => ")
                if arrow and library not in OF_EVERY_SYSTEM:
                    self.assertTrue(place.startswith(f"{site}/"), line)

    def test_torch_may_be_in_another_folder(self):
        """As in an environment that sees the packages of the system."""
        self.begin_job()
        expected = self.ledger("beside")
        elsewhere = self.environment.site / "elsewhere"
        self.environment.remove_torch()
        self.environment.place_torch(folder=elsewhere)
        (self.environment.site / "elsewhere.pth").write_text(f"{elsewhere}\n")
        self.assertEqual(self.ledger("one"), expected)
        self.assertEqual(self.ledger("two", "--workers", "2"), expected)

    def test_libpq_comes_from_the_wheel(self):
        done = self.environment.sinew("models", "list", "--root", self.work, "--store", "postgresql://127.0.0.1:1/none",
                                      check=None, env={**os.environ, "LD_DEBUG": "libs"})
        self.assertNotEqual(done.returncode, 0)
        loaded = re.findall(r"calling init: (\S+)", done.stderr)
        self.assertIn(f"{self.environment.site}/sinew/bin/../lib/libpq.so.5", loaded)
        self.assertEqual([path for path in loaded if re.search(r"/lib(pq|ssl|crypto)\b", path) and "/sinew" not in path], [])

    def test_nothing_is_left_after_it_is_removed(self):
        self.environment.remove_torch()
        self.environment.pip("uninstall", "--yes", "sinew")
        try:
            left = self.environment.files() - self.before
            self.assertEqual(left, set())
            self.assertEqual([path for path in self.environment.folder.rglob("*") if "sinew" in path.name], [])
        finally:
            self.install()


if __name__ == "__main__":
    unittest.main()
