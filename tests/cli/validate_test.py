"""Tests `sinew validate` and `sinew schema` as a user or a script runs them. SINEW names the program."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SINEW = os.environ.get("SINEW", "build/plain/bin/sinew")
JOBS = pathlib.Path(__file__).resolve().parents[1] / "jobs"


def sinew(*arguments, stdin=b"", env=None):
    return subprocess.run([SINEW, *arguments], input=stdin, capture_output=True, env=env or {}, timeout=30)


class Validate(unittest.TestCase):
    def test_good_files_get_one_line(self):
        done = sinew("validate", str(JOBS / "digits.yaml"))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertTrue(done.stdout.decode().endswith("digits.yaml: ok: mlp on idx, 10ep of batch 128, adamw\n"))

    def test_overrides_are_applied(self):
        done = sinew("validate", str(JOBS / "digits.yaml"), "optimizer=sgd", "trainer.batch_size=32")
        self.assertIn(b"batch 32, sgd", done.stdout)

    def test_every_problem_goes_to_stderr_with_exit_code_2(self):
        done = sinew("validate", "-", "trainer.sed=1", stdin=b"modle: x\ndata: {train: x}\ntrainer: {batch_size: 0}\n")
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        lines = done.stderr.decode().splitlines()
        self.assertEqual(
            [(line.split(" ")[0], re.search(r" \[(\w+)\] / ", line)[1]) for line in lines[:3]],
            [("<stdin>:1:1:", "SPEC_UNKNOWN_KEY"), ("<stdin>:3:23:", "SPEC_OUT_OF_RANGE"),
             ("override:", "SPEC_UNKNOWN_KEY")])
        self.assertIn("'modle'", lines[0])
        self.assertIn("'trainer.sed=1'", lines[2])
        self.assertTrue(lines[3].startswith("<stdin>: 3 problems"), lines)

    def test_the_environment_is_used(self):
        job = b"data: {train: '${DIR}/x'}\n"
        self.assertIn(b"on /here/x", sinew("validate", "-", stdin=job, env={"DIR": "/here"}).stdout)
        self.assertIn(b"[SPEC_UNSET_VARIABLE]", sinew("validate", "-", stdin=job).stderr)

    def test_files_that_cannot_be_read(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in (folder, folder + "/none.yaml", "", "/dev/zero"):
                done = sinew("validate", path)
                self.assertEqual((done.returncode, done.stdout), (2, b""), path)
                self.assertTrue(done.stderr, path)
                self.assertNotIn(b"bug in sinew", done.stderr)

    def test_wrong_usage(self):
        for arguments in ((), ("--strict",), ("-x", "job.yaml")):
            done = sinew("validate", *arguments)
            self.assertEqual((done.returncode, done.stdout), (2, b""), arguments)
            self.assertIn(b"  try: sinew validate", done.stderr)


class Schema(unittest.TestCase):
    def test_is_json_of_its_draft(self):
        schema = json.loads(sinew("schema").stdout)
        self.assertEqual(schema["$schema"], "https://json-schema.org/draft/2020-12/schema")
        self.assertEqual((schema["if"], schema["else"]), ({"required": ["command"]}, {"required": ["data"]}))

    def test_markdown_is_the_page_of_the_docs(self):
        page = JOBS.parents[1] / "docs" / "reference" / "job-file.md"
        self.assertEqual(sinew("schema", "--markdown").stdout, page.read_bytes())

    def test_wrong_usage(self):
        for arguments in (("x",), ("--markdown", "x"), ("--json",)):
            self.assertEqual(sinew("schema", *arguments).returncode, 2, arguments)


class Help(unittest.TestCase):
    def test_lists_every_command_and_each_command_has_help(self):
        listing = sinew("--help").stdout.decode()
        commands = [line.split()[0] for line in listing.split("commands:\n")[1].split("\n\n")[0].splitlines()]
        self.assertIn("validate", commands)
        for command in commands:
            done = sinew(command, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, b""), command)
            self.assertTrue(done.stdout.decode().startswith(f"usage: sinew {command}"), command)

    def test_an_unknown_command_suggests_the_most_similar(self):
        done = sinew("valdate")
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertEqual(done.stderr, b"sinew: there is no command 'valdate' [COMMAND_UNKNOWN]\n  try: sinew validate\n")


if __name__ == "__main__":
    unittest.main()
