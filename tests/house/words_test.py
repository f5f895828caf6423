"""Checks that no file mentions folders of the developers' machines, package servers, text written by programs, or the
developers' sessions, issue numbers and marks for open tasks."""
import re
import unittest

from house import project_files, text_of

# The words are split so that this file does not contain them.
FORBIDDEN = [
    r"\.\./sha" r"red\b",
    r"/wo" r"rk/",
    r"\bpyp" r"i\.org",
    r"files\.python" r"hosted",
    r"deb\.deb" r"ian\.org",
    r"\bconda\.ana" r"conda",
    r"registry\.npm" r"js",
    r"\bghcr\.i" r"o\b",
    r"\bLL" r"M\b",
    r"language mo" r"del (wrote|made|generated)",
    r"\bag" r"ent (wrote|made)\b",
    r"\bAI[- ]gen" r"erated\b",
    r"\bcha" r"tgpt\b",
    r"\b(this|my|our|previous|next|last) ses" r"sion\b",
    r"\bin this ses" r"sion\b",
    r"\bissue #" r"\d",
    r"\bas an a" r"ssistant\b",
]
WORDS = [re.compile(word, re.IGNORECASE) for word in FORBIDDEN] + [re.compile(r"\bTO" r"DO\b|\bFIX" r"ME\b|\bX" r"XX\b")]
MAY_SAY_ANYTHING = {".ci/run", "LICENSE"}


def problems_in(name, text):
    return [f"{name}:{number}: {match.group(0)}" for number, line in enumerate(text.split("\n"), 1)
            for word in WORDS for match in word.finditer(line)]


class Words(unittest.TestCase):
    def test_no_file_speaks_of_anything_but_the_product(self):
        found = []
        for path in project_files():
            if str(path) not in MAY_SAY_ANYTHING:
                found += problems_in(path, text_of(path))
        self.assertEqual(found, [])

    def test_such_words_are_found(self):
        for text in ("see .." + "/shared/data", "https://pypi." + "org/simple", "fixed iss" + "ue #12", "an LL" + "M"):
            self.assertTrue(problems_in("x", text), text)
        self.assertFalse(problems_in("x", "a TensorBoard session start; the model at work"))


if __name__ == "__main__":
    unittest.main()
