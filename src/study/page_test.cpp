// Tests that the page holds the whole study, and that no text of the study can become markup.
#include "study/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "study/text.h"

namespace sinew::study {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

tune::Study study_of(int trials) {
  tune::Study study({tune::read_space(R"([{"name":"lr","type":"float","low":1e-5,"high":1,"log":true},
    {"name":"evil</script><script>alert(1)//","type":"cat","choices":["<b>","[64, 64]"]}])")});
  for (int i = 0; i < trials; ++i) {
    const int64_t id = study.start({{std::pow(10.0, -i % 5), static_cast<double>(i % 2)}, "tpe", "<img src=x>", {}});
    study.report(id, 1, i == 3 ? std::nan("") : 0.5 * i);
    if (i == 4)
      study.tell(id, tune::TrialState::failed);
    else if (i != 5)
      study.tell(id, tune::TrialState::complete, {i == 3 ? std::nan("") : 0.25 * i});
  }
  return study;
}

StudyHead head() {
  StudyHead head;
  head.aim.objectives = {{"val/loss", true}};
  head.sampler = "auto";
  head.pruner = "none";
  head.trials = 30;
  return head;
}

// Returns the JSON that is embedded in the page.
json data_in(const std::string& page) {
  const std::string mark = "<script id=\"study\" type=\"application/json\">";
  const size_t from = page.find(mark) + mark.size();
  return json::parse(page.substr(from, page.find("</script>", from) - from));
}

TEST(StudyPage, HoldsEveryTrial) {
  const tune::Study study = study_of(20);
  const json data = data_in(study_page(study_summary("runs/x", study, head()), study, head()));
  ASSERT_EQ(data["trials"].size(), 20U);
  EXPECT_EQ(data["trials"][0]["values"][0], 0.0);
  EXPECT_EQ(data["best"], json({0}));
  EXPECT_EQ(data["trials"][2]["point"][0], study.trial(2).point[0]);
  EXPECT_TRUE(data["trials"][3]["values"][0].is_null());
  EXPECT_TRUE(data["trials"][3]["curve"][0][1].is_null());
  EXPECT_EQ(data["trials"][4]["state"], "failed");
  EXPECT_EQ(data["trials"][5]["state"], "running");
  EXPECT_EQ(data["parameters"][1]["choices"][1], "[64, 64]");
  EXPECT_EQ(data["importance"][0]["main"].size(), 2U);
  EXPECT_TRUE(data_in(study_page(study_summary("runs/x", study_of(0), head()), study_of(0), head()))["trials"].empty());
}

TEST(StudyPage, NeedsNoOtherFileAndNoTextOfTheStudyIsMarkup) {
  const std::string page = study_page(study_summary("runs/x", study_of(20), head()), study_of(20), head());
  for (const char* reach : {"src=\"", "href=", "@import", "url(", "fetch(", "XMLHttpRequest", "innerHTML", "eval("})
    EXPECT_THAT(page, Not(HasSubstr(reach)));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  size_t scripts = 0;
  for (size_t at = 0; (at = page.find("<script", at)) != std::string::npos; ++at) ++scripts;
  EXPECT_EQ(scripts, 2U);
  EXPECT_THAT(page, Not(HasSubstr("{{")));
}

}  // namespace
}  // namespace sinew::study
