// Defines short names for the types, ranges and effects of the option table. Private to option_table*.cpp.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "spec/options.h"

namespace sinew::spec::words {

template <auto First, auto... Rest, typename Object>
auto& reach(Object& object) {
  if constexpr (sizeof...(Rest) == 0) {
    return object.*First;
  } else {
    return reach<Rest...>(object.*First);
  }
}

template <auto... Members>
Access at() {
  using Value = std::remove_reference_t<decltype(reach<Members...>(std::declval<Job&>()))>;
  return static_cast<Value& (*)(Job&)>([](Job& job) -> Value& { return reach<Members...>(job); });
}

inline Type text() {
  return {.kind = Kind::text};
}
inline Type word() {
  return {.kind = Kind::word};
}
inline Type values() {
  return {.kind = Kind::values};
}
inline Type path() {
  return {.kind = Kind::path};
}
inline Type name() {
  return {.kind = Kind::name};
}
inline Type flag() {
  return {.kind = Kind::flag};
}
inline Type bytes() {
  return {.kind = Kind::bytes};
}
inline Type time() {
  return {.kind = Kind::time, .units = "s m h d"};
}
inline Type interval() {
  return {.kind = Kind::interval, .units = "ep st sp tok s m h d dur"};
}
inline Type objective() {
  return {.kind = Kind::objective};
}
inline Type comparison() {
  return {.kind = Kind::comparison};
}
inline Type search() {
  return {.kind = Kind::search};
}
inline Type metric(bool may_be_auto) {
  return {.kind = Kind::metric, .auto_metric = may_be_auto};
}
inline Type whole(double low, double high) {
  return {.kind = Kind::whole, .range = {low, high}};
}
inline Type whole_of(std::vector<std::string> choices) {
  return {.kind = Kind::whole, .choices = std::move(choices)};
}
inline Type number(Range range) {
  return {.kind = Kind::number, .range = range};
}
inline Type choice(std::vector<std::string> choices) {
  return {.kind = Kind::choice, .choices = std::move(choices)};
}
inline Type duration(std::string units) {
  return {.kind = Kind::duration, .units = std::move(units)};
}
inline Type or_zero(Type type) {
  type.zero = true;
  return type;
}
inline Type list(Type item, size_t min_items, size_t max_items) {
  item.min_items = min_items;
  item.max_items = max_items;
  return item;
}

inline constexpr double kBillion = 1e9;
inline const Range kPositive = {0, 1e6, true, false};
inline const Range kFromZero = {0, 1e6};
inline const Range kFraction = {0, 1, false, true};  // [0, 1)
inline const Range kProbability = {0, 1};

inline const Effect kMlp = {"model.name", {"mlp", "tabular"}};
inline const Effect kTabular = {"model.name", {"tabular"}};
inline const Effect kActivation = {"model.name", {"mlp", "cnn", "tabular"}};
inline const Effect kCnn = {"model.name", {"cnn"}};
inline const Effect kBlocks = {"model.name", {"mlp", "cnn"}};
inline const Effect kDropout = {"model.name", {"mlp", "cnn", "lstm", "tabular"}};
inline const Effect kResnet = {"model.name", {"resnet18", "resnet34", "resnet50"}};
inline const Effect kConvolution = {"model.name", {"cnn", "resnet18", "resnet34", "resnet50"}};
inline const Effect kLstm = {"model.name", {"lstm"}};
inline const Effect kOwn = {"model.name", {"program", "torchscript", "library"}};
inline const Effect kGraph = {"model.name", {"program", "torchscript"}};
inline const Effect kLibrary = {"model.name", {"library"}};
inline const Effect kLibraryLoss = {"loss.name", {"library"}};
inline const Effect kLibraryData = {"data.format", {"library"}};
inline const Effect kWeights = {"model.init_from.path", {}};
inline const Effect kProgramLoss = {"loss.name", {"program"}};
inline const Effect kClasses = {"loss.name", {"auto", "cross_entropy"}};
inline const Effect kTable = {"data.format", {"auto", "csv", "tsv", "jsonl", "text_folder"}};
inline const Effect kDelimited = {"data.format", {"auto", "csv", "tsv"}};
inline const Effect kEncoded = {"data.format", {"auto", "csv", "tsv", "text_folder"}};
inline const Effect kImageFiles = {"data.format", {"auto", "image_folder", "image_list", "webdataset"}};
inline const Effect kImages = {
    "data.format", {"auto", "idx", "cifar10", "cifar100", "npy", "npz", "image_folder", "image_list", "webdataset"}};
inline const Effect kText = {"data.format", {"auto", "text"}};
inline const Effect kNotText = {"data.format",
                                {"auto", "idx", "cifar10", "cifar100", "csv", "tsv", "jsonl", "text_folder", "npy",
                                 "npz", "image_folder", "image_list", "webdataset"}};
inline const Effect kSgd = {"optimizer.name", {"sgd"}};
inline const Effect kMomentum = {"optimizer.name", {"sgd", "rmsprop"}};
inline const Effect kAdam = {"optimizer.name", {"adam", "adamw"}};
inline const Effect kAdaptive = {"optimizer.name", {"adam", "adamw", "rmsprop"}};
inline const Effect kRmsprop = {"optimizer.name", {"rmsprop"}};
inline const Effect kStep = {"scheduler.name", {"step"}};
inline const Effect kToAnEnd = {"scheduler.name", {"cosine", "linear"}};
inline const Effect kRamp = {"trainer.batch_size_ramp", {}};
inline const Effect kTune = {"tune.search", {}};
inline const Effect kEarly = {"early_stopping.monitor", {}};
inline const Effect kCommand = {"command", {}};
inline const Effect kMetricsFile = {"metrics.from", {"file"}};

// The units of a learning rate schedule. It must not depend on the clock, or the same job would give different models.
inline constexpr const char* kCounted = "ep st sp tok dur";
inline constexpr const char* kCountedFromStart = "ep st sp tok";
inline constexpr const char* kAny = "ep st sp tok s m h d dur";
inline constexpr const char* kWholeTraining = "ep st sp tok s m h d";

}  // namespace sinew::spec::words

namespace sinew::spec {

std::vector<Option> model_options();  // option_table_model.cpp
std::vector<Option> loss_options();
std::vector<Option> run_options();  // option_table_run.cpp
std::vector<Option> budget_options();
std::vector<Option> threshold_options();
std::vector<Option> command_options();  // option_table_command.cpp
std::vector<Option> resource_options();
std::vector<Option> workers_options();
std::vector<Option> cluster_options();
std::vector<Option> tune_options();

}  // namespace sinew::spec
