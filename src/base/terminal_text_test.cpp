#include "base/terminal_text.h"

#include <gtest/gtest.h>

namespace sinew {
namespace {

TEST(TerminalText, KeepsTheLastColumnOfARowTogether) {
  EXPECT_EQ(wrap_rows("  pass  classes      18 of 18 classes are there", 42),
            "  pass  classes      18 of 18 classes are\n                     there");
  EXPECT_EQ(wrap_rows("price   target  classification: it has only whole numbers", 40),
            "price   target  classification: it has\n                only whole numbers");
  EXPECT_EQ(wrap_rows("                    the text of a longer name", 33),
            "                    the text of a\n                    longer name");
  EXPECT_EQ(wrap_rows("a sentence has no columns", 16), "a sentence has\n  no columns");
  EXPECT_EQ(wrap_rows("a name that is long  and far to the right", 24), "a name that is long  and\n  far to the right")
      << "no room is left below the last column";
}

TEST(TerminalText, NoTerminalGetsWholeLines) {
  EXPECT_EQ(wrap_rows("a sentence of five words", 0), "a sentence of five words");
  EXPECT_EQ(wrap("a sentence of five words", 0), "a sentence of five words");
}

TEST(TerminalText, ACommandToCopyStaysWhole) {
  EXPECT_EQ(wrap("to go on: sinew resume runs/a", 29), "to go on: sinew resume runs/a");
  EXPECT_EQ(wrap("to go on: sinew resume runs/a", 28), "to go on:\n  sinew resume runs/a");
  EXPECT_EQ(wrap("to go on: sinew resume runs/a b=c", 12), "to go on:\n  sinew resume runs/a b=c");
  EXPECT_EQ(wrap("  try: go on with: sinew resume runs/a", 20), "  try: go on with:\n    sinew resume runs/a");
  EXPECT_EQ(wrap("train it again: sinew train job.yaml 'a=[8, 16]'", 20),
            "train it again:\n  sinew train job.yaml 'a=[8, 16]'");
  EXPECT_EQ(wrap_rows("  sinew runs --where 'val/loss<0.3'", 20), "  sinew runs --where 'val/loss<0.3'");
}

TEST(TerminalText, ASentenceAboutTheProgramIsNoCommand) {
  EXPECT_EQ(wrap("sinew train: there is no job.yaml", 20), "sinew train: there\n  is no job.yaml");
  EXPECT_EQ(wrap("sinew: worker 2 has left", 20), "sinew: worker 2 has\n  left");
  EXPECT_EQ(wrap("sinew init: sinew init writes a file, so name it", 30),
            "sinew init: sinew init writes\n  a file, so name it");
}

TEST(TerminalText, AHintStaysBelowItsError) {
  EXPECT_EQ(wrap("what is wrong\n  try: this or that", 14), "what is wrong\n  try: this or\n    that");
}

}  // namespace
}  // namespace sinew
