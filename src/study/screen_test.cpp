// Tests the table of a study, and what a terminal shows of it.
#include "study/screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/table.h"

namespace sinew::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

StudyHead head() {
  StudyHead head;
  head.aim.objectives = {{"val/loss", true}};
  head.max_resource = 9;
  return head;
}

// Returns the options of a study of 30 planned trials with one parameter.
tune::StudyOptions planned_study(const std::string& parameter) {
  tune::StudyOptions options{tune::read_space(R"([{"name":")" + parameter + R"(","type":"float","low":0,"high":1}])")};
  options.budget = 30;
  return options;
}

// Trial 0 ended with 0.5, 1 with 0.25, 2 failed, 3 is paused, 4 and 5 run.
tune::Study some_study() {
  tune::Study study(planned_study("optimizer.lr"));
  for (int i = 0; i < 6; ++i) study.start({{(i + 1) / 8.0}, "tpe", "", {}});
  study.tell(0, tune::TrialState::complete, {0.5});
  study.tell(1, tune::TrialState::complete, {0.25});
  study.tell(2, tune::TrialState::failed);
  study.report(3, 1, 0.75);
  study.pause(3);
  study.report(4, 1, 2);
  study.report(4, 2, 1.5);
  return study;
}

TEST(StudyTable, ShowsRunningAndBestTrials) {
  EXPECT_THAT(study_table(some_study(), head(), 3723, 120, 20),
              ElementsAre("6 of 30 trials started, 3 ended, 2 running, 1 paused; 1:02:03",
                          "  best          0.25       0/9  trial 1     optimizer.lr=0.25",
                          "                 0.5       0/9  trial 0     optimizer.lr=0.125",
                          "  running        1.5       2/9  trial 4     optimizer.lr=0.625",
                          "                   -       0/9  trial 5     optimizer.lr=0.75"));
}

TEST(StudyTable, NamesTheFoldsOfACrossValidation) {
  tune::StudyOptions options{tune::read_space(R"([{"name":"data.split.fold","type":"int","low":0,"high":2}])")};
  options.budget = 3;
  tune::Study study(options);
  for (const double fold : {2, 0}) study.start({{fold}, "grid", "", {}});
  study.tell(0, tune::TrialState::complete, {0.5});
  study.report(1, 1, 2);
  EXPECT_THAT(study_table(study, head(), 5, 60, 20),
              ElementsAre("2 of 3 folds started, 1 ended, 1 running; 0:00:05", "  best           0.5       0/9  fold 2",
                          "  running          2       1/9  fold 0"));
}

TEST(StudyTable, FitsTheTerminal) {
  for (const int columns : {1, 20, 40, 80}) {
    for (const int rows : {0, 1, 2, 3, 5, 9}) {
      const auto table = study_table(some_study(), head(), 5, columns, rows);
      EXPECT_LE(table.size(), static_cast<size_t>(std::max(rows, 1)));
      for (const std::string& line : table) EXPECT_LT(line.size(), static_cast<size_t>(std::max(columns, 5)));
    }
  }
  EXPECT_THAT(study_table(some_study(), head(), 5, 120, 3).back(), "  ... 3 more");
}

TEST(StudyTable, HasOneLineBeforeTheFirstTrial) {
  const tune::Study study(planned_study("x"));
  EXPECT_THAT(study_table(study, head(), 0, 80, 10),
              ElementsAre("0 of 30 trials started, 0 ended, 0 running; 0:00:00"));
}

// A terminal of unlimited width. It understands the controls that StudyScreen sends: cursor up, start of line, erase
// below.
struct Terminal {
  std::vector<std::string> lines = {""};
  size_t row = 0;
  void write(std::string_view text) {
    while (!text.empty()) {
      if (text.starts_with("\x1b[J")) {
        lines.resize(row + 1);
        lines[row].clear();
        text.remove_prefix(3);
      } else if (text.starts_with("\x1b[")) {
        row -= static_cast<size_t>(std::stoi(std::string(text.substr(2))));
        text.remove_prefix(text.find('A') + 1);
      } else if (text[0] == '\n') {
        if (++row == lines.size()) lines.emplace_back();
        text.remove_prefix(1);
      } else {
        if (text[0] != '\r') lines[row] += text[0];
        text.remove_prefix(1);
      }
    }
  }
};

TEST(StudyScreen, TheTableStaysBelowTheLines) {
  Terminal terminal;
  StudyScreen screen([&](std::string_view text) { terminal.write(text); }, [] { return TerminalSize{80, 24}; });
  screen.say("one");
  screen.show({"a", "b"});
  screen.show({"c", "d", "e"});
  EXPECT_THAT(terminal.lines, ElementsAre("one", "c", "d", "e", ""));
  screen.say("two");
  EXPECT_THAT(terminal.lines, ElementsAre("one", "two", "c", "d", "e", ""));
  screen.show({"f"});
  EXPECT_THAT(terminal.lines, ElementsAre("one", "two", "f", ""));
  screen.end();
  screen.end();
  screen.say("three");
  EXPECT_THAT(terminal.lines, ElementsAre("one", "two", "three", ""));
}

// A terminal breaks the lines of a table into several rows when its window becomes narrower.
TEST(StudyScreen, ATableInANarrowerWindowIsErasedAsAWhole) {
  std::string all;
  int columns = 120;
  StudyScreen screen([&](std::string_view text) { all = text; }, [&] { return TerminalSize{columns, 24}; });
  screen.show({std::string(100, 'a'), std::string(61, 'b'), std::string(60, 'c'), ""});
  columns = 60;
  screen.say("one");  // 2 + 2 + 1 + 1 rows
  EXPECT_EQ(all, "\r\x1b[6A\x1b[Jone\n" + std::string(58, 'a') + "…\n" + std::string(58, 'b') + "…\n" +
                     std::string(58, 'c') + "…\n\n");
  screen.show({"d"});
  EXPECT_EQ(all, "\r\x1b[4A\x1b[Jd\n");
  columns = 120;
  screen.end();
  EXPECT_EQ(all, "\r\x1b[1A\x1b[J");
}

TEST(StudyScreen, WithoutATerminalThereAreOnlyLines) {
  std::string all;
  StudyScreen screen([&](std::string_view text) { all += text; }, [] { return TerminalSize{}; });
  screen.say("one");
  screen.show({"a"});
  screen.say("two");
  screen.end();
  EXPECT_EQ(all, "one\ntwo\n");
}

}  // namespace
}  // namespace sinew::study
