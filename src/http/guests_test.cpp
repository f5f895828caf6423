#include "http/guests.h"

#include <gtest/gtest.h>

#include <set>

namespace sinew::http {
namespace {

// Makes a pointer that only names a connection. No code dereferences it.
Connection* name(uintptr_t number) {
  return reinterpret_cast<Connection*>(number * 16);
}

TEST(Guests, ANewConnectionReplacesTheOldestStranger) {
  Guests guests(16, 0);
  for (uintptr_t i = 1; i <= 16; ++i) {
    ASSERT_TRUE(guests.judge("a").accepted);
    guests.add(name(i), "a");
  }
  EXPECT_TRUE(guests.make_known(name(1)));
  for (uintptr_t i = 17; i < 1000; ++i) {
    const auto verdict = guests.judge("b");
    ASSERT_TRUE(verdict.accepted);
    ASSERT_EQ(verdict.replaced, name(i - 15));  // never the known one
    guests.remove(verdict.replaced);
    guests.add(name(i), "b");
    ASSERT_EQ(guests.count(), 16U);
  }
}

TEST(Guests, AnAddressAboveItsLimitReplacesOnlyItsOwn) {
  Guests guests(100, 3);
  guests.add(name(1), "client");
  for (uintptr_t i = 2; i < 50; ++i) {
    const auto verdict = guests.judge("flood");
    ASSERT_TRUE(verdict.accepted);
    if (verdict.replaced != nullptr) guests.remove(verdict.replaced);
    ASSERT_NE(verdict.replaced, name(1));
    guests.add(name(i), "flood");
    ASSERT_LE(guests.count(), 4U);
  }
}

TEST(Guests, SomeConnectionsAreLeftForNewClients) {
  Guests guests(16, 0);
  for (uintptr_t i = 1; i <= 16; ++i) guests.add(name(i), "a");
  for (uintptr_t i = 1; i <= 14; ++i) EXPECT_TRUE(guests.make_known(name(i)));
  EXPECT_FALSE(guests.make_known(name(15)));
  EXPECT_EQ(guests.judge("b").replaced, name(15));
}

TEST(Guests, StrangersThatDoNotYieldAreBounded) {
  Guests guests(16, 0);
  uintptr_t count = 0;
  while (count < 1000 && guests.judge("a").accepted) guests.add(name(++count), "a");
  EXPECT_EQ(count, 16U + 2 + 8 + 1);
}

}  // namespace
}  // namespace sinew::http
