// Filters and orders as MLflow's client writes them: "metrics.loss < 1 and params.lr = '0.1'", "metrics.loss DESC".
//
// The grammar is that of mlflow.search_runs and its like: comparisons joined by AND, no OR, no brackets but around the
// list of IN. Pure; takes any bytes; what does not fit is a Refused that says where.
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
  std::string dataset = {}, digest = {};  // of a metric, where an order names them: on that data set alone
};
struct Clause {
  Column column;
  std::string comparator;          // in capitals: "=", "NOT IN", "IS NULL"
  std::vector<std::string> texts;  // of IN several, else at most one
  double number = 0;               // of a metric or an attribute that is a number
};
struct Order {
  Column column;
  bool ascending = true;
};

// What can be asked of a kind of thing.
struct Grammar {
  bool metrics = false, params = false, datasets = false;  // tags always
  std::set<std::string> texts, numbers;                    // attributes
  std::map<std::string, std::string> aliases = {};         // further names of attributes
};

std::vector<Clause> parse_filter(const std::string& filter, const Grammar& grammar);
Order parse_order(const std::string& order, const Grammar& grammar);

// Nothing: there is no such metric, parameter, tag.
using Fact = std::variant<std::monostate, double, std::string>;
using Facts = std::function<std::vector<Fact>(const Column& column)>;  // one; of a data set as many as there are
bool matches(const std::vector<Clause>& clauses, const Facts& facts);

// The places of things in order. What a thing does not have comes last either way, NaN just before.
std::vector<size_t> sorted_places(size_t count, const std::vector<Order>& orders,
                                  const std::function<Fact(size_t place, const Column& column)>& fact_of);

}  // namespace sinew::web
