#include "web/filter.h"

#include <algorithm>
#include <charconv>

#include "base/cost_limit.h"
#include "base/wildcards.h"
#include "web/context.h"

namespace sinew::web {
namespace {

using Field = Column::Field;

bool is_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || byte >= 0x80;
}
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
std::string upper(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

// Reads a text from left to right. When it refuses the text, it names the position.
class Reader {
 public:
  Reader(const std::string& text, const char* what) : text_(text), what_(what) {}

  [[noreturn]] void refuse(const std::string& expected) const {
    constexpr size_t kShown = 500;
    const std::string shown = text_.size() <= kShown ? text_ : text_.substr(0, kShown) + "...";
    refuse_invalid(std::string("Invalid ") + what_ + " '" + shown + "': at character " + std::to_string(at_ + 1) +
                       " there should be " + expected,
                   "an example: metrics.loss < 1 AND params.lr = '0.1' AND tags.\"my tag\" LIKE 'a%'");
  }
  bool at_end() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
    return at_ == text_.size();
  }
  bool take(std::string_view symbol) {
    if (at_end() || text_.compare(at_, symbol.size(), symbol) != 0) return false;
    at_ += symbol.size();
    return true;
  }
  // Takes a keyword in upper or lower case. Does not take the beginning of a longer word.
  bool take_word(const char* word) {
    const size_t size = std::string_view(word).size();
    if (at_end() || upper(text_.substr(at_, size)) != word) return false;
    if (at_ + size < text_.size() && is_word(text_[at_ + size])) return false;
    at_ += size;
    return true;
  }
  // Reads a text between two of these quotes. Inside the text, a doubled quote means the quote itself.
  std::string quoted(char quote) {
    std::string value;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] != quote) {
        value += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == quote) {
        value += text_[at_++];
      } else {
        ++at_;
        return value;
      }
    }
    refuse("a closing quote");
  }
  char peek() { return at_end() ? '\0' : text_[at_]; }
  char peek_now() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  // Reads letters, digits, '_' and the characters in `more`.
  std::string word(std::string_view more) {
    const size_t first = at_;
    while (at_ < text_.size() && (is_word(text_[at_]) || more.find(text_[at_]) != std::string_view::npos)) ++at_;
    return text_.substr(first, at_ - first);
  }
  double number() {
    double value = 0;
    take("+");
    at_end();
    const char* first = text_.data() + at_;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
    if (end == first || error == std::errc::invalid_argument) refuse("a number");
    if (error == std::errc::result_out_of_range) refuse("a number in the range of a double");
    at_ += static_cast<size_t>(end - first);
    return value;
  }
  std::string text_value() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') refuse("a text in quotes");
    return quoted(quote);
  }

 private:
  const std::string& text_;
  const char* const what_;
  size_t at_ = 0;
};

Field field_of(Reader& reader, const std::string& word, const Grammar& grammar) {
  const auto is = [&](std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* name) { return word == name; });
  };
  if (is({"tag", "tags"})) return Field::kTag;
  if (is({"attribute", "attributes", "attr", "run"})) return Field::kAttribute;
  if (grammar.metrics && is({"metric", "metrics"})) return Field::kMetric;
  if (grammar.params && is({"parameter", "parameters", "param", "params"})) return Field::kParam;
  if (grammar.datasets && is({"dataset", "datasets"})) return Field::kDataset;
  reader.refuse("one of " + std::string(grammar.metrics ? "metrics, " : "") + (grammar.params ? "params, " : "") +
                "tags, attributes instead of '" + word + "'");
}

std::string key_of(Reader& reader) {
  const char quote = reader.peek_now();
  if (quote == '"' || quote == '`') return reader.quoted(quote);
  std::string key = reader.word("./-:@");
  if (key.empty()) reader.refuse("a key");
  return key;
}

Column column_of(Reader& reader, const Grammar& grammar) {
  Column column;
  const char quote = reader.peek();
  std::string word = quote == '"' || quote == '`' ? reader.quoted(quote) : reader.word("");
  if (word.empty()) reader.refuse("a column such as metrics.loss");
  if (reader.peek_now() == '.') {
    column.field = field_of(reader, word, grammar);
    reader.take(".");
    column.key = key_of(reader);
  } else {
    column.key = word;
  }
  if (column.field == Field::kDataset && column.key != "name" && column.key != "digest" && column.key != "context") {
    reader.refuse("name, digest or context of a dataset instead of '" + column.key + "'");
  }
  if (column.field == Field::kAttribute) {
    if (const auto alias = grammar.aliases.find(column.key); alias != grammar.aliases.end()) column.key = alias->second;
    if (!grammar.texts.contains(column.key) && !grammar.numbers.contains(column.key)) {
      std::string known;
      for (const auto* names : {&grammar.texts, &grammar.numbers}) {
        for (const std::string& name : *names) known += (known.empty() ? "" : ", ") + name;
      }
      reader.refuse("one of the attributes " + known + " instead of '" + column.key + "'");
    }
  }
  return column;
}

std::string comparator_of(Reader& reader, const Column& column, bool number) {
  for (const char* symbol : {">=", "<=", "!=", "=", ">", "<"}) {
    if (!reader.take(symbol)) continue;
    if (!number && (symbol[0] == '>' || symbol[0] == '<'))
      reader.refuse("=, !=, LIKE or ILIKE, because the column is a text");
    return symbol;
  }
  if (number) reader.refuse("one of =, !=, <, <=, >, >=");
  for (const char* word : {"LIKE", "ILIKE"}) {
    if (reader.take_word(word)) return word;
  }
  const bool labels = column.field == Field::kParam || column.field == Field::kTag;
  if (labels && reader.take_word("IS")) {
    const bool negated = reader.take_word("NOT");
    if (!reader.take_word("NULL")) reader.refuse("NULL");
    return negated ? "IS NOT NULL" : "IS NULL";
  }
  if (!labels) {
    const bool negated = reader.take_word("NOT");
    if (reader.take_word("IN")) return negated ? "NOT IN" : "IN";
  }
  reader.refuse(labels ? "one of =, !=, LIKE, ILIKE, IS NULL, IS NOT NULL" : "one of =, !=, LIKE, ILIKE, IN, NOT IN");
}

void check_pattern(const Reader& reader, const std::string& pattern) {
  constexpr size_t kMaxBytes = 5000, kMaxWildcards = 100;
  const auto wildcards = std::count_if(pattern.begin(), pattern.end(), [](char c) { return c == '%' || c == '_'; });
  if (pattern.size() > kMaxBytes || static_cast<size_t>(wildcards) > kMaxWildcards)
    reader.refuse("a pattern of at most 5000 bytes and 100 wildcards (% and _)");
}

Clause clause_of(Reader& reader, const Grammar& grammar) {
  Clause clause;
  clause.column = column_of(reader, grammar);
  const bool metric = clause.column.field == Field::kMetric;
  const bool number =
      metric || (clause.column.field == Field::kAttribute && grammar.numbers.contains(clause.column.key));
  clause.comparator = comparator_of(reader, clause.column, number);
  if (clause.comparator.starts_with("IS")) return clause;
  if (clause.comparator.ends_with("IN")) {
    if (!reader.take("(")) reader.refuse("a list in parentheses");
    do clause.texts.push_back(reader.text_value());
    while (reader.take(","));
    if (!reader.take(")")) reader.refuse("a comma or ')'");
    return clause;
  }
  const char next = reader.peek();
  if (!number) {
    clause.texts.push_back(reader.text_value());
    if (clause.comparator.ends_with("LIKE")) check_pattern(reader, clause.texts[0]);
  } else if (!metric && (next == '\'' || next == '"')) {  // times may be in quotes
    const std::string text = reader.text_value();
    Reader inner(text, "number");
    clause.number = inner.number();
    if (!inner.at_end()) inner.refuse("the end");
  } else {
    clause.number = reader.number();
  }
  return clause;
}

constexpr Wildcards kLike{.any = '%', .one = '_'};

template <typename T>
bool compare(const T& left, const std::string& comparator, const T& right) {
  if (comparator == "=") return left == right;
  if (comparator == "!=") return left != right;
  if (comparator == "<") return left < right;
  if (comparator == "<=") return left <= right;
  if (comparator == ">") return left > right;
  return left >= right;
}

bool matches(const Clause& clause, const Fact& fact) {
  const bool missing = std::holds_alternative<std::monostate>(fact);
  if (clause.comparator == "IS NULL") return missing;
  if (clause.comparator == "IS NOT NULL") return !missing;
  if (missing) return false;
  if (const auto* number = std::get_if<double>(&fact)) return compare(*number, clause.comparator, clause.number);
  const auto& text = std::get<std::string>(fact);
  const bool among = std::find(clause.texts.begin(), clause.texts.end(), text) != clause.texts.end();
  if (clause.comparator == "IN") return among;
  if (clause.comparator == "NOT IN") return !among;
  if (clause.comparator == "LIKE") return fits_wildcards(text, clause.texts[0], kLike);
  if (clause.comparator == "ILIKE") return fits_wildcards(upper(text), upper(clause.texts[0]), kLike);
  return compare(text, clause.comparator, clause.texts[0]);
}

// Sorts missing values last, and NaN just before them.
int rank_of(const Fact& fact) {
  if (std::holds_alternative<std::monostate>(fact)) return 2;
  const auto* number = std::get_if<double>(&fact);
  return number != nullptr && *number != *number ? 1 : 0;
}

}  // namespace

std::vector<Clause> parse_filter(const std::string& filter, const Grammar& grammar) {
  constexpr size_t kMaxClauses = 200, kMaxBytes = 100'000;
  if (filter.size() > kMaxBytes) {
    refuse_invalid("Invalid filter: it has " + std::to_string(filter.size()) + " bytes; the limit is 100000",
                   "split the search into several");
  }
  Reader reader(filter, "filter");
  std::vector<Clause> clauses;
  if (reader.at_end()) return clauses;
  do {
    if (clauses.size() == kMaxClauses) reader.refuse("the end: a filter has at most 200 comparisons");
    clauses.push_back(clause_of(reader, grammar));
  } while (reader.take_word("AND"));
  if (!reader.at_end()) reader.refuse("AND or the end");
  return clauses;
}

Order parse_order(const std::string& text, const Grammar& grammar) {
  Reader reader(text, "order_by");
  Order order;
  order.column = column_of(reader, grammar);
  if (reader.take_word("DESC")) {
    order.ascending = false;
  } else {
    reader.take_word("ASC");
  }
  if (!reader.at_end()) reader.refuse("ASC, DESC or the end");
  return order;
}

bool matches(const std::vector<Clause>& clauses, const FactSource& facts) {
  CostLimit::check_current();
  return std::all_of(clauses.begin(), clauses.end(), [&](const Clause& clause) {
    const std::vector<Fact> all = facts(clause.column);
    return std::any_of(all.begin(), all.end(), [&](const Fact& fact) { return matches(clause, fact); });
  });
}

namespace {

// Compares two records by their keys. Returns a number below 0 if `a` comes before `b`, above 0 if it comes after `b`,
// or else 0.
int compare_keys(const std::vector<Order>& orders, const std::vector<Fact>& a, const std::vector<Fact>& b) {
  for (size_t k = 0; k < orders.size(); ++k) {
    const int first = rank_of(a[k]), second = rank_of(b[k]);
    if (first != second) return first - second;
    if (first != 0 || a[k] == b[k]) continue;
    return (a[k] < b[k]) == orders[k].ascending ? -1 : 1;
  }
  return 0;
}

int64_t bytes_of_keys(const std::vector<Fact>& keys) {
  size_t bytes = keys.size() * sizeof(Fact);
  for (const Fact& key : keys) {
    if (const auto* text = std::get_if<std::string>(&key)) bytes += text->size();
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace

void check_number_of_orders(size_t orders) {
  constexpr size_t kMaxOrders = 50;
  if (orders > kMaxOrders)
    refuse_invalid("'order_by' has " + std::to_string(orders) + " columns; the limit is 50", "send fewer");
}

std::vector<Order> parse_orders(const std::vector<std::string>& texts, const Grammar& grammar) {
  check_number_of_orders(texts.size());
  std::vector<Order> orders;
  for (const std::string& text : texts) add_order(orders, parse_order(text, grammar));
  return orders;
}

void add_order(std::vector<Order>& orders, Order order) {
  const bool known = std::ranges::any_of(orders, [&](const Order& before) { return before.column == order.column; });
  if (!known) orders.push_back(std::move(order));
}

int64_t FirstRecords::bytes_of(const Entry& entry) {
  return static_cast<int64_t>(sizeof entry + entry.id.size()) + bytes_of_keys(entry.keys);
}

bool FirstRecords::comes_before(const Entry& a, const Entry& b) const {
  return compare_keys(orders_, a.keys, b.keys) < 0;
}

void FirstRecords::offer(const std::string& id, std::vector<Fact> keys) {
  ++offered_;
  if (count_ == 0) return;
  const auto before = [this](const Entry& a, const Entry& b) { return comes_before(a, b); };
  Entry entry{id, std::move(keys)};
  if (heap_.size() == count_) {
    if (!before(entry, heap_.front())) return;
    std::pop_heap(heap_.begin(), heap_.end(), before);
    CostLimit::release_current(bytes_of(heap_.back()));
    heap_.pop_back();
  }
  CostLimit::hold_current(bytes_of(entry));
  heap_.push_back(std::move(entry));
  std::push_heap(heap_.begin(), heap_.end(), before);
}

std::vector<std::string> FirstRecords::ids() {
  std::sort_heap(heap_.begin(), heap_.end(), [this](const Entry& a, const Entry& b) { return comes_before(a, b); });
  std::vector<std::string> ids;
  for (Entry& entry : heap_) ids.push_back(std::move(entry.id));
  return ids;
}

std::vector<size_t> sorted_order(size_t count, const std::vector<Order>& orders,
                                 const std::function<Fact(size_t index, const Column& column)>& fact_of) {
  const CostLimit::Temporary keys_are_temporary;
  std::vector<std::vector<Fact>> keys(count);
  std::vector<size_t> indices(count);
  for (size_t i = 0; i < count; ++i) {
    CostLimit::check_current();
    indices[i] = i;
    for (const Order& order : orders) keys[i].push_back(fact_of(i, order.column));
    CostLimit::hold_current(bytes_of_keys(keys[i]));
  }
  std::stable_sort(indices.begin(), indices.end(),
                   [&](size_t a, size_t b) { return compare_keys(orders, keys[a], keys[b]) < 0; });
  return indices;
}

}  // namespace sinew::web
