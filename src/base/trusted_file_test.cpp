#include "base/trusted_file.h"

#include <gtest/gtest.h>

namespace sinew {
namespace {

TEST(TrustedFile, BelongsToThisUserOrRootAlone) {
  const auto is_trusted = [](uid_t owner, mode_t mode) {
    struct stat facts {};
    facts.st_uid = owner;
    facts.st_mode = mode;
    return why_untrusted(facts, 1000).empty();
  };
  for (const uid_t owner : {1000U, 0U}) {
    for (const mode_t mode : {S_IFREG | 0600U, S_IFREG | 0644U, S_IFDIR | 0755U, S_IFDIR | 02770U})
      EXPECT_TRUE(is_trusted(owner, mode)) << owner << " " << std::oct << mode;
    for (const mode_t mode : {S_IFREG | 0620U, S_IFREG | 0602U, S_IFREG | 02660U, S_IFDIR | 0770U, S_IFDIR | 02777U})
      EXPECT_FALSE(is_trusted(owner, mode)) << owner << " " << std::oct << mode;
  }
  EXPECT_FALSE(is_trusted(1001, S_IFREG | 0600));
  EXPECT_FALSE(is_trusted(65534, S_IFDIR | 0700));
}

}  // namespace
}  // namespace sinew
