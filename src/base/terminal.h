// Finds out what the terminal behind an output can do. Everything that prints uses these rules.
#pragma once

namespace sinew {

struct Terminal {
  bool present = false;       // false: a pipe, a file ...
  bool moves_cursor = false;  // lines can be replaced; false: no terminal, or TERM is unset or "dumb"
  bool color = false;         // the terminal moves its cursor, and NO_COLOR is unset or empty
  // 0 if there is no terminal or its size is unknown. The environment variable COLUMNS overrides what the terminal
  // reports.
  int columns = 0, rows = 0;
};

// Reads the environment and the terminal's present size; the user may resize the terminal later.
Terminal terminal_of(int descriptor);
// Returns the most columns of a line. Leaves out the last one of the terminal, because some terminals start a new line
// if it is full. 0: the terminal does not say its width, or there is none.
int usable_columns(const Terminal& terminal);
// Returns whether both standard input and output are terminals, so that a person can be asked.
bool a_person_types();

}  // namespace sinew
