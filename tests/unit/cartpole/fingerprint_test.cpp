#include "fingerprint/fingerprint.hpp"

#include <gtest/gtest.h>

#include <array>

namespace caftan::fingerprint_test {
namespace {

TEST(Fingerprint, IsTheSha256OfTheBytes) {
  Fingerprint fingerprint;
  EXPECT_EQ(fingerprint.text(), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  fingerprint.add(std::uint64_t{0x6867666564636261});  // "abcdefgh"
  EXPECT_EQ(fingerprint.text(), "sha256:9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab");
}

TEST(Fingerprint, GoesOnAfterItWasRead) {
  Fingerprint read;
  read.add(1.5);
  const std::string half = read.text();
  EXPECT_EQ(read.text(), half) << "reading changes nothing";
  read.add(2.5);
  Fingerprint unread;
  unread.add(1.5);
  EXPECT_EQ(unread.text(), half);
  unread.add(2.5);
  EXPECT_EQ(read.text(), unread.text());
  EXPECT_NE(read.text(), half);
}

TEST(Fingerprint, TellsOrderAndLastBitsApart) {
  Fingerprint first;
  first.add(0.0);
  Fingerprint negative;
  negative.add(-0.0);
  EXPECT_NE(first.text(), negative.text());
  Fingerprint copy(first);
  EXPECT_EQ(copy.text(), first.text());
  first.add(std::array{1.0F, 2.0F});
  copy.add(std::array{2.0F, 1.0F});
  EXPECT_NE(copy.text(), first.text());
}

}  // namespace
}  // namespace caftan::fingerprint_test
