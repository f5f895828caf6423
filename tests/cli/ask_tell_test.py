"""Tests a program that tunes with `sinew tune --ask-tell` as its child process. SINEW names `sinew`."""
import json
import os
import subprocess
import unittest

SINEW = os.environ.get("SINEW", "build/plain/bin/sinew")
SPACE = [
    {"name": "lr", "type": "float", "low": 1e-5, "high": 1.0, "log": True},
    {"name": "layers", "type": "int", "low": 1, "high": 6},
    {"name": "opt", "type": "cat", "choices": ["sgd", "adam"]},
    {"name": "momentum", "type": "float", "low": 0.0, "high": 0.99, "if": {"opt": ["sgd"]}},
]


class Child:
    def __init__(self):
        self.process = subprocess.Popen([SINEW, "tune", "--ask-tell"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, bufsize=1)

    def line(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def say(self, **request):
        return self.line(json.dumps(request))

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(20)


class AskTell(unittest.TestCase):
    def setUp(self):
        self.child = Child()
        self.addCleanup(lambda: self.child.process.poll() is None and (self.child.process.kill(), self.child.end()))

    def test_a_search_finds_better_values_than_it_began_with(self):
        say = self.child.say
        self.assertEqual(say(cmd="init", sampler="tpe", seed=1, budget=60, directions=["maximize"], space=SPACE), {"ok": True})
        values = []
        for number in range(60):
            asked = say(cmd="ask")
            params = asked["params"]
            self.assertEqual(asked["id"], number)
            self.assertIsInstance(params["layers"], int)
            self.assertIsInstance(params["lr"], float)
            self.assertEqual("momentum" in params, params["opt"] == "sgd")
            values.append(-abs(params["layers"] - 4) - 1000 * abs(params["lr"] - 0.01) - 2 * (params["opt"] == "sgd"))
            self.assertEqual(say(cmd="tell", id=number, value=values[-1]), {"ok": True})
        self.assertGreater(max(values[20:]), max(values[:10]))
        self.assertEqual(self.child.line('{"cmd":"ask","why":true}')["id"], 60)

    def test_trials_pause_and_continue(self):
        say = self.child.say
        pruner = {"name": "asha", "min_resource": 1, "max_resource": 9, "reduction_factor": 3}
        began = say(cmd="init", sampler="random", seed=2, budget=9, space=SPACE, pruner=pruner)
        self.assertEqual(began, {"ok": True, "resume": True})
        steps = {}
        new = whole = resumed = 0
        while True:
            asked = say(cmd="ask", no_new=new >= 9)
            if asked["id"] is None:
                break
            trial = asked["id"]
            new += "resume_from" not in asked
            resumed += "resume_from" in asked
            self.assertEqual(asked.get("resume_from", 0), steps.get(trial, 0))
            while True:
                steps[trial] = steps.get(trial, 0) + 1
                answer = say(cmd="report", id=trial, step=steps[trial], value=trial + 1 / steps[trial])
                if answer["stop"]:
                    self.assertTrue(answer["pause"])
                    break
                if steps[trial] == 9:
                    whole += 1
                    say(cmd="tell", id=trial, value=float(trial))
                    break
        self.assertEqual(new, 9)
        self.assertGreaterEqual(whole, 1)
        self.assertGreaterEqual(resumed, 1)
        self.assertEqual(steps[0], 9)  # the best trial is completed
        self.assertLess(sum(steps.values()), 9 * 9)

    def test_nonsense_is_answered_and_changes_nothing(self):
        say = self.child.say
        say(cmd="init", sampler="random", seed=1, space=SPACE)
        say(cmd="ask")
        for line in ("", "{", "[]", '{"cmd":"x"}', '{"cmd":"tell","id":5,"value":1}', '{"cmd":"tell","id":0}'):
            answer = self.child.line(line)
            self.assertIn("error", answer)
        self.assertEqual(say(cmd="tell", id=0, value=float("nan")), {"ok": True})

    def test_quit_and_the_end_of_input_end_the_program(self):
        self.child.process.stdin.write('{"cmd":"quit"}\n')
        self.child.process.stdin.flush()
        self.assertEqual(self.child.process.wait(20), 0)
        other = Child()
        self.assertEqual(other.end(), 0)

    def test_help_names_ask_tell(self):
        done = subprocess.run([SINEW, "tune", "--help"], capture_output=True, timeout=30)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"--ask-tell", done.stdout)


if __name__ == "__main__":
    unittest.main()
