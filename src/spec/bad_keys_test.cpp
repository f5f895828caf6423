// Tests of keys that are unknown, given twice or without a value. Each case lists every problem with position and code.
#include "spec/expect_problems.h"

namespace sinew::spec {
namespace {

const BadFile kKeysFiles[] = {
    {"unknown_key", std::string(kData) + "modle: cnn\n", {"job:2:1: SPEC_UNKNOWN_KEY | 'modle' | 'model'"}},
    {"unknown_key_below",
     std::string(kData) + "trainer: {batchsize: 3}\n",
     {"job:2:11: SPEC_UNKNOWN_KEY | 'batchsize' | 'batch_size'"}},
    {"key_of_other_section",
     std::string(kData) + "trainer: {lr: 0.1}\n",
     {"job:2:11: SPEC_UNKNOWN_KEY | 'lr' | 'optimizer.lr'"}},
    {"key_of_other_tools",
     std::string(kData) + "trainer: {max_epochs: 3}\n",
     {"job:2:11: SPEC_UNKNOWN_KEY | 'max_epochs' | 'max_duration'"}},
    {"nothing_close", std::string(kData) + "zebra: 1\n", {"job:2:1: SPEC_UNKNOWN_KEY | 'zebra'"}},
    {"dotted_key", std::string(kData) + "optimizer.lr: 0.1\n", {"job:2:1: SPEC_UNKNOWN_KEY | 'optimizer.lr'"}},
    {"twice", std::string(kData) + "name: a\nmodel: cnn\nname: b\n", {"job:4:1: SPEC_DUPLICATE_KEY | 'name'"}},
    {"section_twice",
     std::string(kData) + "model: {name: cnn}\nmodel: {norm: batch}\n",
     {"job:3:1: SPEC_DUPLICATE_KEY | 'model'"}},
    {"no_value", std::string(kData) + "name:\nmodel: cnn\n", {"job:2:1: SPEC_MISSING_VALUE | name"}},
    {"null_value",
     std::string(kData) + "trainer: {seed: null, batch_size: ~}\n",
     {"job:2:11: SPEC_MISSING_VALUE | trainer.seed", "job:2:23: SPEC_MISSING_VALUE | trainer.batch_size"}},
    {"empty_section", std::string(kData) + "trainer:\nmodel: cnn\n", {"job:2:1: SPEC_MISSING_VALUE | trainer"}},
    {"section_is_list", std::string(kData) + "trainer: [1]\n", {"job:2:10: SPEC_WRONG_TYPE | trainer"}},
    {"section_is_value", std::string(kData) + "trainer: fast\n", {"job:2:10: SPEC_WRONG_TYPE | 'fast' | trainer"}},
    {"value_is_section", std::string(kData) + "name: {a: b}\n", {"job:2:7: SPEC_WRONG_TYPE | name"}},
    {"value_is_list",
     std::string(kData) + "trainer: {batch_size: [1]}\n",
     {"job:2:23: SPEC_WRONG_TYPE | trainer.batch_size"}},
};

INSTANTIATE_TEST_SUITE_P(Keys, BadFiles, testing::ValuesIn(kKeysFiles),
                         [](const auto& file) { return std::string(file.param.name); });

}  // namespace
}  // namespace sinew::spec
