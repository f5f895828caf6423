// Breaks texts between words where a terminal would break them inside a word. A pipe or a file gets whole lines.
//
// All rooms that print may call it. Only columns_of and what prints look at the real terminal.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sinew {

// Returns how many terminal columns the text needs. Counts two columns for every character that may be wide, so the
// result is never too small.
int display_width(std::string_view text);

// Both break each line of the text between words, so that it needs at most `columns` columns; a longer word stays
// whole, and later parts of a line are indented. A command that a person may copy ("to go on: sinew resume last") moves
// to a line of its own and stays whole. If `columns` is 0, no line is broken.
//
// For messages. Two blanks separate the metrics of a line: it breaks there if it can.
std::string wrap(std::string_view text, int columns);
// For lists. Two blanks separate the columns of a row: what is in the last column stays below it.
std::string wrap_rows(std::string_view text, int columns);

// Returns how many columns a line may have on the terminal behind a descriptor, or 0 if there is no terminal or its
// size is unknown. The environment variable COLUMNS overrides what the terminal reports.
int columns_of(int descriptor);

// Prints a text, on a terminal with wrap_rows.
void print_text(std::FILE* stream, std::string_view text);
// Prints a help text to stdout with wrap_rows: people also read it in a pager, so a pipe gets lines of 118 columns.
void print_help(std::string_view text);
// Prints the error to stderr: "WHO: what is wrong [CODE]", and below it what to try. It may quote text of any origin.
void print_error(const std::string& who, const Error& error);

}  // namespace sinew
