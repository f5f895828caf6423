// Inside web/: parses the filters and orders of MLflow's client: "metrics.loss < 1 and params.lr = '0.1'",
// "metrics.loss DESC".
//
// The grammar is that of mlflow.search_runs: comparisons joined by AND, no OR, and parentheses only around the list
// after IN. Pure. The parsers accept any bytes, and throw Refused with the position of an error.
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
  std::string dataset = {}, digest = {};  // for a metric in an order: consider only its values on this data set
  bool operator==(const Column&) const = default;
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

// The columns by which a kind of record can be filtered and ordered.
struct Grammar {
  // whether records of this kind have metrics, parameters and data sets; records of every kind have tags
  bool metrics = false, params = false, datasets = false;
  // the names of the attributes that are texts, and of those that are numbers
  std::set<std::string> texts, numbers;
  std::map<std::string, std::string> aliases = {};  // other names of attributes
};

std::vector<Clause> parse_filter(const std::string& filter, const Grammar& grammar);
Order parse_order(const std::string& order, const Grammar& grammar);
// Refuses a search by more columns than a search may have. Each record is compared by all of them.
void check_number_of_orders(size_t orders);
// Appends the order unless an earlier one has its column: then it decides nothing. So the keys of a record are no
// larger than the record.
void add_order(std::vector<Order>& orders, Order order);
std::vector<Order> parse_orders(const std::vector<std::string>& texts, const Grammar& grammar);

// The value of a column, or monostate if the record has no such metric, parameter or tag.
using Fact = std::variant<std::monostate, double, std::string>;
// Returns all values of a column. There is one value, unless the record has several data sets.
using FactSource = std::function<std::vector<Fact>(const Column& column)>;
bool matches(const std::vector<Clause>& clauses, const FactSource& facts);

// Keeps the first `count` of any number of records in the given order. So a search holds one page in memory and not
// every record that matches. Whether the order is ascending or descending, missing values come last and NaN just before
// them. The thread's CostLimit counts what is kept.
class FirstRecords {
 public:
  FirstRecords(std::vector<Order> orders, size_t count) : orders_(std::move(orders)), count_(count) {}
  // `keys` are the record's values in the columns of the order. The order of records with equal keys is undefined.
  void offer(const std::string& id, std::vector<Fact> keys);
  size_t offered() const { return offered_; }
  std::vector<std::string> ids();  // returns the ids in order; call it once, at the end

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
  std::vector<Entry> heap_;  // a heap with the last record of the order on top
};

// Returns the indices of `count` records, sorted by `orders`. Records with equal keys keep their order. While it sorts,
// the thread's CostLimit counts the keys of all records.
std::vector<size_t> sorted_order(size_t count, const std::vector<Order>& orders,
                                 const std::function<Fact(size_t index, const Column& column)>& fact_of);

}  // namespace sinew::web
