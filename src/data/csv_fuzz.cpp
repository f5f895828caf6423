// Fuzzes the table readers. The first byte chooses the format and the options. A reader must throw Error or give a
// table whose columns have equal lengths.
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "base/utf8.h"
#include "data/encoding.h"
#include "data/table.h"

namespace {

using namespace sinew;
using namespace sinew::data;

void check(const Table& table) {
  for (const Column& column : table.columns) {
    SINEW_CHECK(column.categorical ? column.codes.size() == table.lines.size()
                                   : column.numbers.size() == table.lines.size());
    for (const int32_t code : column.codes)
      SINEW_CHECK(code >= -1 && code < static_cast<int32_t>(column.categories.size()));
    for (const std::string& word : column.categories) SINEW_CHECK(first_invalid_utf8(word) == std::string_view::npos);
    for (const double number : column.numbers) SINEW_CHECK(!std::isinf(number));
  }
}

// Encodes all rows, and checks that every input is finite.
void encode_all(const Table& table) {
  std::vector<Candidate> candidates;
  for (const Column& column : table.columns) candidates.push_back({column.name, std::nullopt, false});
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < table.rows(); ++row) rows.push_back(row);
  if (rows.empty()) return;
  const Fitted fitted = fit_encoding(table, rows, candidates, true);
  SINEW_CHECK(fitted.facts.size() == candidates.size());
  const EncodedRows encoded = encode(table, rows, fitted.encoding);
  const RowLayout layout(fitted.encoding);
  std::vector<float> out(static_cast<size_t>(fitted.encoding.width()));
  layout.unpack(encoded, rows.size() - 1, out.data());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  TableRequest request;
  request.format = data[0] % 3 == 0 ? "csv" : data[0] % 3 == 1 ? "tsv" : "jsonl";
  request.skip_corrupt = (data[0] & 0x80) != 0;
  request.bad_cells_missing = (data[0] & 0x40) != 0;
  try {
    const Table table = read_table(text, "fuzz", request, [&](const std::string& name) {
      return name.size() % 4 == 3   ? declared(CellKind::word)
             : name.size() % 8 == 2 ? declared(CellKind::date)
                                    : CellWish{};
    });
    check(table);
    encode_all(table);
  } catch (const Error&) {
  }
  return 0;
}
