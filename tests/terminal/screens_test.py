"""Looks at what `sinew` shows in a real terminal: in windows of 60 to 200 columns, in one that is resized, in a dumb one, and
without colours; and at what it writes into a pipe and a file. It asserts what holds for every good screen, not texts."""
import concurrent.futures
import json
import os
import pathlib
import re
import sys
import tempfile
import traceback
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import faults
import window
from stories import PROGRAMS, TUNE, Place, all_stories, command_after

AT_A_TIME = 3  # stories; many wait more than they compute


class Screens(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="sinew-", ignore_cleanup_errors=True)  # a run that a story left may write
        cls.addClassCleanup(folder.cleanup)
        terminal = window.Terminal(folder.name, PROGRAMS)
        cls.addClassCleanup(terminal.close)
        stories = all_stories()
        cls.broken, places = [], [Place(terminal, folder.name, str(n)) for n in range(len(stories))]

        def play(place, story, *columns):
            try:
                story(place, *columns)
            except Exception:  # the other stories go on
                cls.broken.append(f"{story.__name__} {columns}: {traceback.format_exc()}")

        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            for place, story in zip(places, stories):
                pool.submit(play, place, *story)
        cls.screens = [screen for place in places for screen in place.screens]
        if shown := os.environ.get("SINEW_SCREENS"):  # for people who want to look at them
            pathlib.Path(shown).write_text("\n".join(f"== {screen}\n" + "\n".join([*screen.rows, screen.end]) for screen in cls.screens))

    def of(self, words="", terminal=None):
        """Returns the screens of the commands that contain the words: all, or only those in a terminal or not in one."""
        return [screen for screen in self.screens if re.search(words, screen.command) and terminal in (None, screen.columns > 0)]

    def each(self, screens, search):
        """Fails for every screen in which the search finds faults."""
        self.assertNotEqual(screens, [])
        for screen in screens:
            with self.subTest(str(screen)):
                found = search(screen)
                self.assertEqual(found, [], "\n" + "\n".join([*found, "the screen:", *screen.rows]))

    def test_every_screen_was_reached(self):
        self.assertEqual(self.broken, [], "\n".join(self.broken))

    def test_commands_end_as_they_should(self):
        self.each(self.screens, lambda s: [] if s.code == s.wanted_code else [f"exit code {s.code} instead of {s.wanted_code}"])

    def test_no_line_is_wider_than_the_window(self):
        self.each(self.of(terminal=True), lambda s: faults.too_wide(s.lines, s.columns))

    def test_the_table_of_a_study_fits_and_is_there_once(self):
        studies = self.of("sinew tune ", True)
        self.assertNotEqual([table for screen in studies for table in screen.midway], [])
        for screen in studies:
            for table in screen.midway:
                with self.subTest(f"{table}, in the middle"):
                    heads = [n for n, line in enumerate(table.lines) if faults.TABLE_HEAD.search(line)]
                    self.assertEqual(len(heads), 1, "\n".join(table.rows))
                    self.assertEqual(faults.too_wide(table.lines[heads[0]:], table.columns), [])
            with self.subTest(f"{screen}, at the end"):
                self.assertEqual([line for line in screen.lines if faults.TABLE_HEAD.search(line) or line.startswith("  running ")], [])

    def test_nothing_of_a_progress_line_is_left(self):
        live = [screen for screen in self.screens if "sinew ps" not in screen.command]  # it shows the same facts, wrapped
        self.each(live, lambda s: faults.remainders(s.lines) + faults.glued(s.lines))

    def test_one_progress_line_remains(self):
        runs = [screen for screen in self.of("sinew (train|resume) ", True) if faults.progress_lines(faults.drawn(screen.raw))
                and "SINEW_POISON" not in screen.command and "dumb" not in screen.command]
        self.each(runs, lambda s: [f"a progress line: {line!r}" for line in s.lines if faults.OF_PROGRESS.search(line)][1:])
        self.each(runs, lambda s: [] if faults.progress_lines(s.lines) else ["no progress line"])

    def test_the_last_progress_line_shows_the_last_step(self):
        def search(screen):
            last, steps = faults.progress_lines(screen.lines)[-1:], re.search(r"; (\d+) steps, ", "\n".join(screen.lines))[1]
            return [] if last and re.match(rf"step +{steps}\b", last[0]) else [f"the last step is {steps}, and the line shows: {last}"]
        self.each([s for s in self.screens if re.search(r"; \d+ steps, \d+ samples", "\n".join(s.lines))], search)

    def test_one_progress_line_is_there_while_the_window_is_narrow(self):
        resized_runs = self.of("sinew train .*runs/resized")
        self.assertEqual(len(resized_runs), 1)
        for narrow in resized_runs[0].midway:
            lines = [line for line in narrow.lines if faults.OF_PROGRESS.search(line)]
            self.assertEqual(len(lines), 1, "\n".join(narrow.rows))
            self.assertEqual(faults.remainders(lines), [])
            self.assertLessEqual(len(lines[0]), narrow.columns)

    def test_the_prompt_begins_a_line(self):
        self.each(self.of(terminal=True), lambda s: [] if window.END.match(s.end) else [f"the prompt is in the line {s.end!r}"])
        self.each(self.of(terminal=False), lambda s: [f"the output does not end with a newline: {s.end!r}"] if s.end else [])

    def test_the_cursor_is_visible(self):
        self.each(self.of(terminal=True), lambda s: [] if s.cursor_visible else ["the cursor is hidden"])

    def test_no_time_is_forecast_before_the_first_steps(self):
        self.each(self.of("sinew (train|resume)"), lambda s: faults.early_eta(s.raw))

    def test_no_colors_where_they_are_not_wanted(self):
        self.each(self.of("NO_COLOR"), lambda s: [f"a colour: {code!r}" for code in sorted(set(faults.COLOR.findall(s.raw)))])

    def test_only_text_goes_to_pipes_and_files_and_dumb_terminals(self):
        self.each(self.of(terminal=False) + self.of("TERM=dumb"), lambda s: faults.controls(s.raw))

    def test_terminals_get_colors_and_a_live_line(self):
        for screen in self.of(r"^sinew train .*runs/(one|two)$", True):
            self.assertTrue(faults.COLOR.search(screen.colors), screen)
            self.assertIn("\x1b[K", screen.raw)

    def test_messages_are_whole(self):
        def search(screen):
            return [fault for _, text in screen.messages for fault in faults.missing(text, screen.rows, screen.columns > 0)]
        self.each([screen for screen in self.screens if screen.messages], search)

    def test_an_error_is_the_same_in_the_report_and_on_the_screens(self):
        def search(screen):
            error = json.loads((screen.folder / "runs/deadly/report.json").read_text())["error"]
            said, shown = " ".join(error.split()), " ".join(" ".join(screen.lines).split())
            return [] if said in shown else [f"does not say: {said!r}"]
        self.each(self.of("runs/deadly|show deadly"), search)

    def test_a_failure_has_a_way_out(self):
        self.each([s for s in self.screens if s.wanted_code in (1, 2) and "wrong.yaml" not in s.command],
                  lambda s: [] if any(line.startswith("  try: ") for line in s.lines) else ["nothing to try"])

    def test_a_stopped_run_says_how_to_go_on(self):
        self.each([s for s in self.of("sinew (train|resume)") if s.wanted_code == 75],
                  lambda s: [] if command_after("to go on: ", s).startswith("sinew resume runs/") else ["nothing to go on with"])
        resumed = self.of("^sinew resume")
        self.assertEqual(len(resumed), 2)
        self.each(resumed, lambda s: [] if any(line.startswith("resumed at step") for line in s.lines) else ["not resumed"])

    def test_the_best_trial_can_be_trained_again(self):
        def search(screen):
            command = command_after("to train it again: ", screen)
            return [f"{key} is missing in {command!r}" for key in ("optimizer.lr=", "optimizer.weight_decay=", "model.hidden=") if key not in command]
        self.each(self.of(re.escape(TUNE)), search)

    def test_numbers_are_readable(self):
        self.each([s for s in self.screens if "sinew predict" not in s.command], lambda s: faults.unreadable_numbers(s.lines))


if __name__ == "__main__":
    unittest.main()
