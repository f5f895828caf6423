// Inside web/: parses the filters and orders of MLflow's client: "metrics.loss < 1 and params.lr = '0.1'",
// "metrics.loss DESC".
//
// The grammar is that of mlflow.search_runs: comparisons joined by AND; no OR; parentheses only around the list of IN.
// Pure. The parsers accept any bytes and throw Refused with the position of the error.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace sinew::web {

struct Column {
  enum class Field { kMetric, kParam, kTag, kAttribute, kDataset } field = Field::kAttribute;
  std::string key;
  std::string dataset = {}, digest = {};  // for a metric in an order: only its values on this data set
};
struct Clause {
  Column column;
  std::string comparator;          // in capitals: "=", "NOT IN", "IS NULL"
  std::vector<std::string> texts;  // the operands of IN, or the single text operand
  double number = 0;               // the operand for a metric or a numeric attribute
};
struct Order {
  Column column;
  bool ascending = true;
};

// The columns that a kind of record has.
struct Grammar {
  // whether records of this kind have metrics, parameters and data sets; every kind has tags
  bool metrics = false, params = false, datasets = false;
  std::set<std::string> texts, numbers;             // the text attributes and the numeric attributes of the kind
  std::map<std::string, std::string> aliases = {};  // other names of attributes
};

std::vector<Clause> parse_filter(const std::string& filter, const Grammar& grammar);
Order parse_order(const std::string& order, const Grammar& grammar);
std::vector<Order> parse_orders(const std::vector<std::string>& texts, const Grammar& grammar);

// The value of a column, or monostate if the record has no such metric, parameter or tag.
using Fact = std::variant<std::monostate, double, std::string>;
// Returns all values of a column: one value, except that a record may have several data sets.
using FactSource = std::function<std::vector<Fact>(const Column& column)>;
bool matches(const std::vector<Clause>& clauses, const FactSource& facts);

// Keeps the first `count` of any number of records in the given order, so that a search holds one page and not every
// record that matches. The thread's CostLimit counts what is kept. In both directions, missing values come last and NaN
// just before them.
class FirstRecords {
 public:
  FirstRecords(std::vector<Order> orders, size_t count) : orders_(std::move(orders)), count_(count) {}
  // `keys`: the values of the order's columns. Records with equal keys have no defined order.
  void offer(const std::string& id, std::vector<Fact> keys);
  size_t offered() const { return offered_; }
  std::vector<std::string> ids();  // in order; call it once, at the end

 private:
  struct Entry {
    std::string id;
    std::vector<Fact> keys;
  };
  static int64_t bytes_of(const Entry& entry);
  bool comes_before(const Entry& a, const Entry& b) const;

  const std::vector<Order> orders_;
  const size_t count_;
  size_t offered_ = 0;
  std::vector<Entry> heap_;  // the last in the order is on top
};

// Returns the indices of `count` records in that order; records with equal keys keep their order.
std::vector<size_t> sorted_order(size_t count, const std::vector<Order>& orders,
                                 const std::function<Fact(size_t index, const Column& column)>& fact_of);

}  // namespace sinew::web
