"""Tests that docs/reference/commands.md equals the program's output, and that every command has a help text."""
import os
import pathlib
import re
import subprocess
import unittest

SINEW = os.environ.get("SINEW")
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/reference/commands.md"


class Reference(unittest.TestCase):
    def test_the_page_is_the_generated_one(self):
        made = subprocess.run([SINEW, "help", "--markdown"], capture_output=True, text=True, timeout=60)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(made.stdout, PAGE.read_text(), "make it anew: sinew help --markdown > docs/reference/commands.md")

    def test_every_command_has_help_and_refuses_unknown_options(self):
        commands = re.findall(r"^## sinew ([\w-]+)", PAGE.read_text(), re.MULTILINE)
        self.assertGreater(len(commands), 20)
        for command in commands:
            done = subprocess.run([SINEW, command, "--help"], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""), command)
            self.assertTrue(done.stdout.startswith(f"usage: sinew {command}"), command)
            for line in done.stdout.splitlines():
                self.assertLessEqual(len(line), 120, line)
            wrong = subprocess.run([SINEW, command, "--frobnicate=1"], capture_output=True, text=True, timeout=60)
            self.assertEqual(wrong.returncode, 2, command)
            self.assertIn("[OPTION_UNKNOWN]", wrong.stderr)
            self.assertIn("  try: ", wrong.stderr)


if __name__ == "__main__":
    unittest.main()
