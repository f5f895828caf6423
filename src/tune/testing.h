// Makes spaces and points, for the tests of tune/.
#pragma once

#include <cmath>
#include <string>

#include "base/expected_error.h"
#include "tune/allowed.h"

namespace sinew::tune {

// A space with every kind of parameter and two levels of conditions.
inline Space mixed_space() {
  return read_space(R"([
    {"name":"lr","type":"float","low":1e-5,"high":1,"log":true},
    {"name":"momentum","type":"float","low":-1,"high":3},
    {"name":"drop","type":"float","low":0,"high":0.8,"step":0.1},
    {"name":"layers","type":"int","low":1,"high":6},
    {"name":"width","type":"int","low":16,"high":1024,"log":true},
    {"name":"even","type":"int","low":2,"high":21,"step":2},
    {"name":"act","type":"cat","choices":["relu","tanh",3,true,null]},
    {"name":"size","type":"ordinal","choices":["s","m","l"]},
    {"name":"kernel","type":"cat","choices":["rbf","poly"],"if":{"act":["relu",3]}},
    {"name":"gamma","type":"float","low":1e-3,"high":10,"log":true,"if":{"kernel":["rbf"],"layers":[1,2,3]}}])");
}

// A space of 3 + 3 * 2 + 1 = 10 points.
inline Space finite_space() {
  return read_space(R"([
    {"name":"algo","type":"cat","choices":["a","b","c"]},
    {"name":"depth","type":"int","low":1,"high":3,"if":{"algo":["a","b"]}},
    {"name":"wide","type":"cat","choices":[false,true],"if":{"algo":["b"]}}])");
}

// A space with constraints. About one point in thirty satisfies them.
inline Space constrained_space() {
  return read_space(R"([
    {"name":"a","type":"float","low":0,"high":1},
    {"name":"b","type":"float","low":1e-3,"high":1,"log":true},
    {"name":"dim","type":"int","low":1,"high":64},
    {"name":"heads","type":"cat","choices":[2,4,"8"]},
    {"name":"deep","type":"cat","choices":[false,true]},
    {"name":"layers","type":"int","low":1,"high":60,"if":{"deep":[true]}}])",
                    {Comparison("a + b <= 0.3"), Comparison("dim % heads == 0"), Comparison("layers < dim")});
}

// A smooth bowl over the active parameters of any space. Its minimum is 0, at 0.3 of every range and at choice 0.
inline double bowl(const Space& space, const Point& point) {
  double sum = 0;
  for (size_t i = 0; i < space.size(); ++i) {
    if (std::isnan(point[i])) continue;
    const double u = space.unit_at(i, point[i]);
    sum += space[i].ordered() ? (u - 0.3) * (u - 0.3) : 0.3 * (point[i] != 0);
  }
  return sum;
}

}  // namespace sinew::tune
