#include "caftan/net/internal/open_tells.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace caftan::net::open_tells_test {
namespace {

TEST(OpenTells, TL5_AsManyOfTheOldestEndAsThePeerReports) {
  OpenTells open;
  for (const std::uint64_t room : {1, 2, 3}) open.append({room, nullptr});
  const auto two = open.on_ended(2);
  ASSERT_TRUE(two);
  ASSERT_EQ(two->size(), 2U);
  EXPECT_EQ((*two)[0].room, 1U);
  EXPECT_EQ((*two)[1].room, 2U);
  EXPECT_EQ(open.size(), 1U);
}

TEST(OpenTells, TL5_MoreThanAreOpenIsMalformedAndChangesNothing) {
  OpenTells open;
  open.append({5, nullptr});
  EXPECT_EQ(open.on_ended(2).error().code(), Errc::malformed_payload);
  EXPECT_EQ(open.on_ended(0).error().code(), Errc::malformed_payload);
  EXPECT_EQ(open.size(), 1U);
  EXPECT_TRUE(open.on_ended(1));
  EXPECT_EQ(open.on_ended(1).error().code(), Errc::malformed_payload);
}

TEST(OpenTells, TL4_TheReferenceToTheObjectIsKeptUntilTheEnd) {
  OpenTells open;
  const auto reference = std::make_shared<int>(1);
  open.append({5, reference});
  EXPECT_EQ(reference.use_count(), 2);
  EXPECT_TRUE(open.on_ended(1));
  EXPECT_EQ(reference.use_count(), 1);
  open.append({5, reference});
  EXPECT_EQ(open.take_all().size(), 1U);
  EXPECT_EQ(reference.use_count(), 1);
  EXPECT_EQ(open.size(), 0U);
}

}  // namespace
}  // namespace caftan::net::open_tells_test
