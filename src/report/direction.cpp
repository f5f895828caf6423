#include <algorithm>
#include <array>
#include <cctype>

#include "report/report.h"

namespace sinew::report {
namespace {

// If one of these words is in a metric's name, a lower value is better.
constexpr std::array<std::string_view, 36> kLowerIsBetterWords = {
    "loss",   "losses",   "error",   "errors", "err",        "mse",      "rmse", "mae",        "mape",
    "smape",  "rmsle",    "msle",    "mad",    "perplexity", "ppl",      "nll",  "entropy",    "bce",
    "hinge",  "deviance", "brier",   "ece",    "wer",        "cer",      "fid",  "divergence", "kl",
    "regret", "latency",  "seconds", "ms",     "time",       "distance", "bpc",  "bpb",        "mispredictions"};

// Words with these endings mean the same, as in "logloss" and "valLoss".
constexpr std::array<std::string_view, 4> kLowerIsBetterEndings = {"loss", "error", "rmse", "perplexity"};

bool means_lower(const std::string& word) {
  if (std::find(kLowerIsBetterWords.begin(), kLowerIsBetterWords.end(), word) != kLowerIsBetterWords.end()) return true;
  return std::any_of(kLowerIsBetterEndings.begin(), kLowerIsBetterEndings.end(),
                     [&](std::string_view end) { return word.ends_with(end); });
}

}  // namespace

bool lower_is_better(std::string_view metric) {
  std::string word;
  bool rate = false, lower = false;
  const auto finish_word = [&] {
    rate = rate || word == "throughput" || word == "per";  // "ms" does not count in a rate such as "samples_per_ms"
    lower = lower || (!rate && !word.empty() && means_lower(word));
    word.clear();
  };
  for (const char c : metric) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    } else {
      finish_word();
    }
  }
  finish_word();
  return lower;
}

bool is_detail(std::string_view metric) {
  constexpr std::array<std::string_view, 7> kDetails = {"precision", "recall", "f1_weighted", "balanced_accuracy",
                                                        "mcc",       "ece",    "pr_auc"};
  const std::string_view name = metric.substr(metric.rfind('/') + 1);
  // The standard deviation over the folds of a cross-validation is one, too.
  return name.ends_with("_std") || std::ranges::find(kDetails, name) != kDetails.end();
}

bool lower_is_better(std::string_view metric, std::string_view mode) {
  return mode == "auto" ? lower_is_better(metric) : mode == "min";
}

}  // namespace sinew::report
