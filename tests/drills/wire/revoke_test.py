"""Real workers that join with tokens: a revoked or expired token ends the membership of its worker, and of no other."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import group as gr
import sinew_process as sp

USAGE = 2


class Revoke(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.job = sp.write_job(cls.path, gr.ENDLESS)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def token(self, group, *words):
        return sp.run("token", "create", group.directory, *words, check=0, timeout=60).stdout.strip()

    def ends_for_good(self, group, member, code, words):
        """Waits until the member's worker ends and cannot come back: its next process is refused."""
        group.until(lambda: member.over, f"worker {member.number} ends")
        self.assertEqual([end[1] for end in group.ends if end[0] == member.number][-1], USAGE, group.said())
        said = member.log.read_text()
        self.assertIn(f"[{code}]", said)
        self.assertIn(words, said)
        self.assertIn("sinew token create", said)

    def test_a_revoked_member_is_out_and_the_others_go_on(self):
        group = gr.Group(self, self.job, self.path / "revoked", members=2)
        tokens = [self.token(group), self.token(group)]
        for number, token in ((2, tokens[0]), (3, tokens[1])):
            group.add_member(number, token, last_codes=(0, gr.STOPPED, USAGE))
        ids = group.until_complete()
        self.assertEqual({one["id"]: one.get("token") for one in group.status()["members"]},
                         {ids[0]: None, ids[1]: None, ids[2]: tokens[0].split(".")[1], ids[3]: tokens[1].split(".")[1]})
        self.assertEqual(group.call("POST", "/v2/control", {"kind": "stop"}, token=tokens[0])[0], 403)
        sp.run("token", "revoke", group.directory, tokens[0].split(".")[1], check=0, timeout=60)
        self.assertNotIn(ids[2], [one["id"] for one in group.status()["view"]["members"]])
        self.ends_for_good(group, group.members[2], "COORDINATOR_TOKEN_REVOKED", "was revoked")
        group.until_steps(5)
        rest = {number: ids[number] for number in (0, 1, 3)}
        group.until(lambda: group.computing() == rest, "the others compute, and are those of before")
        self.assertRegex(group.log(), "member [0-9]+ lost( at step [0-9]+)?: the join token [0-9a-f]{16} was revoked")
        group.members.pop(2)
        group.stop()
        gr.assert_same_story(self, group.directory, gr.Calm(self.job, self.path / "calm"))

    def test_a_member_whose_token_expires_is_out(self):
        group = gr.Group(self, self.job, self.path / "expired", members=2)
        self.assertIn("[COORDINATOR_TOKEN_EXPIRED]", self.refused_with(group, self.token(group, "--expires", "1s")))
        group.until_steps(2)
        group.stop()
        gr.assert_same_story(self, group.directory, gr.Calm(self.job, self.path / "calm"))

    def refused_with(self, group, token):
        """Starts a worker with this token, and waits until the coordinator refuses it because the token has expired.
        Returns what the worker said at its end."""
        group.add_member(2, token, last_codes=(USAGE,))
        member = group.members[2]
        self.ends_for_good(group, member, "COORDINATOR_TOKEN_EXPIRED", "expired at")
        group.members.pop(2)
        return member.log.read_text()


if __name__ == "__main__":
    unittest.main()
