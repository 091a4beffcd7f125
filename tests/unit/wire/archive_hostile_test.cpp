/// Bytes that no archive wrote: truncated, with absurd lengths, nested without end, random.
#include <gtest/gtest.h>

#include <random>

#include "caftan/wire/archive.hpp"

namespace caftan::wire::archive_hostile_test {
namespace {

struct Tree {
  int value = 0;
  std::vector<Tree> children;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& value& children;
  }
};

using Everything = std::tuple<bool, int, std::string, std::vector<double>, std::vector<std::string>, std::vector<bool>,
                              std::map<std::string, int>, std::unordered_map<int, std::vector<int>>, std::set<int>,
                              std::optional<std::pair<int, bool>>, std::variant<std::monostate, int, std::string>,
                              std::list<std::string>, Tree, Error, Result<std::string>, RRefId>;

Everything blank_everything() {
  return {{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, Result<std::string>(Error()), {}};
}

Everything example() {
  Everything value = blank_everything();
  std::get<2>(value) = "text";
  std::get<3>(value) = {1, 2, 3};
  std::get<4>(value) = {"a", "bc"};
  std::get<5>(value) = {true, false};
  std::get<6>(value) = {{"k", 1}, {"l", 2}};
  std::get<7>(value) = {{1, {2, 3}}};
  std::get<8>(value) = {4, 5};
  std::get<9>(value).emplace(1, true);
  std::get<10>(value) = "variant";
  std::get<11>(value) = {"x"};
  std::get<12>(value).children.resize(2);
  std::get<13>(value) = Error(Errc::timeout, "w", "t", std::make_shared<const Error>(Errc::io_error, "c"));
  std::get<14>(value) = std::string("result");
  return value;
}

Result<void> decode_everything(ByteView bytes) {
  Everything value = blank_everything();
  return decode_into(bytes, value);
}

Bytes bytes_of(std::initializer_list<unsigned> numbers) {
  Bytes bytes;
  for (const unsigned n : numbers) bytes.push_back(static_cast<std::byte>(n));
  return bytes;
}

TEST(ArchiveHostile, EachTruncationIsRefused) {
  const Bytes bytes = *encode(example());
  ASSERT_TRUE(decode_everything(bytes));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const Result<void> read = decode_everything(ByteView(bytes).first(length));
    ASSERT_FALSE(read) << length;
    EXPECT_EQ(read.error().code(), Errc::malformed_payload);
  }
}

TEST(ArchiveHostile, LeftOverBytesAreRefused) {
  Bytes bytes = *encode(5);
  bytes.push_back(std::byte{0});
  EXPECT_EQ(decode<int>(bytes).error().text(), "1 bytes left over at byte 4");
}

TEST(ArchiveHostile, AnAbsurdLengthIsRefusedBeforeAnythingIsAllocated) {
  // Lengths of 2^63, of 2^32 and of one more than the bytes that follow; each is tried for elements of different sizes.
  const Bytes huge = bytes_of({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1});
  const Bytes large = bytes_of({0x80, 0x80, 0x80, 0x80, 0x10, 0, 0, 0, 0});
  const Bytes one_more = bytes_of({3, 0, 0});
  for (const Bytes& bytes : {huge, large, one_more}) {
    EXPECT_EQ(decode<std::string>(bytes).error().code(), Errc::malformed_payload);
    EXPECT_EQ(decode<std::vector<std::uint8_t>>(bytes).error().code(), Errc::malformed_payload);
    EXPECT_EQ(decode<std::vector<double>>(bytes).error().code(), Errc::malformed_payload);
    EXPECT_EQ(decode<std::vector<std::string>>(bytes).error().code(), Errc::malformed_payload);
    EXPECT_EQ(decode<std::vector<bool>>(bytes).error().code(), Errc::malformed_payload);
    EXPECT_EQ(decode<std::vector<std::monostate>>(bytes).error().code(), Errc::malformed_payload);
    EXPECT_EQ((decode<std::map<int, int>>(bytes).error().code()), Errc::malformed_payload);
    EXPECT_EQ(decode<std::list<int>>(bytes).error().code(), Errc::malformed_payload);
  }
}

TEST(ArchiveHostile, M10_ALengthHasOneForm) {
  const auto text_of = [](const Bytes& bytes) { return decode<std::string>(bytes).error().text(); };
  ASSERT_EQ(decode<std::string>(bytes_of({0x01, 'x'})).value(), "x");
  EXPECT_EQ(text_of(bytes_of({0x81, 0x00, 'x'})), "bad length at byte 2");  // 1 in two bytes
  // A length of 2^64 - 1 is read, and exceeds the bytes that follow; a length with 65 bits is malformed.
  const Bytes largest = bytes_of({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01});
  EXPECT_EQ(text_of(largest), "a length exceeds what is left at byte 10");
  // A length whose bits 0 to 63 are zero and whose bit 64 is set: a reader that drops bit 64 would take it for an empty
  // string.
  const Bytes wide = bytes_of({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02});
  EXPECT_EQ(text_of(wide), "bad length at byte 10");
  const Bytes eleven = bytes_of({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01});
  EXPECT_EQ(text_of(eleven), "bad length at byte 10");
}

TEST(ArchiveHostile, ABoolIsZeroOrOne) {
  EXPECT_EQ(decode<bool>(bytes_of({2})).error().text(), "a bool is neither 0 nor 1 at byte 1");
  EXPECT_FALSE(decode<std::vector<bool>>(bytes_of({2, 1, 255})));
  EXPECT_FALSE((decode<std::array<bool, 2>>(bytes_of({1, 3}))));
  EXPECT_FALSE(decode<std::optional<std::monostate>>(bytes_of({7})));
}

TEST(ArchiveHostile, AVariantIndexIsChecked) {
  EXPECT_EQ((decode<std::variant<int, bool>>(bytes_of({2, 0, 0, 0, 0})).error().text()),
            "bad index of a variant at byte 1");
}

TEST(ArchiveHostile, KeysOccurOnce) {
  EXPECT_FALSE((decode<std::map<bool, bool>>(bytes_of({2, 1, 0, 1, 0}))));
  EXPECT_FALSE((decode<std::unordered_set<std::uint8_t>>(bytes_of({2, 9, 9}))));
  EXPECT_TRUE((decode<std::multimap<bool, bool>>(bytes_of({2, 1, 0, 1, 0}))));
}

TEST(ArchiveHostile, AnErrorHasAKnownCode) {
  Error error;
  EXPECT_EQ(decode_into(bytes_of({250, 0, 0, 0}), error).error().text(), "an error has no such code at byte 3");
}

TEST(ArchiveHostile, NestingIsBoundedBothWays) {
  const auto nested = [](int levels) {
    Tree tree;
    for (Tree* at = &tree; levels > 0; --levels) at = &at->children.emplace_back();
    return tree;
  };
  // A tree and its vector are two levels each.
  ASSERT_TRUE(encode(nested(31)));
  EXPECT_EQ(encode(nested(32)).error().text(), "the value is nested deeper than 64");
  EXPECT_TRUE(decode<Tree>(*encode(nested(31))));

  Bytes deep;
  for (int i = 0; i < 100000; ++i) append(deep, bytes_of({0, 0, 0, 0, 1}));
  const Result<Tree> read = decode<Tree>(deep);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().text().substr(0, 22), "nested deeper than 64 ");
}

TEST(ArchiveHostile, RandomBytesNeverCrash) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 20000; ++i) {
    Bytes bytes(random() % 200);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random() % (i % 2 ? 256 : 4));
    const Result<void> read = decode_everything(bytes);
    if (!read) {
      EXPECT_NE(read.error().code(), Errc::ok);
    }
  }
}

TEST(ArchiveHostile, AFlippedBitIsReadOrRefusedAndWhatIsReadCanBeWrittenAgain) {
  const Bytes bytes = *encode(example());
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    Bytes flipped = bytes;
    flipped[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    Everything value = blank_everything();
    if (decode_into(flipped, value)) {
      EXPECT_EQ(encode(value)->size(), bytes.size()) << bit;
    }
  }
}

TEST(ArchiveHostile, WhatSerializeThrowsIsAnError) {
  struct Throws {
    void serialize(InArchive&, unsigned) { throw std::runtime_error("no"); }
  };
  EXPECT_EQ(decode<Throws>({}).error().text(), "serialize threw: no at byte 0");
  struct ThrowsSilently {
    void serialize(InArchive&, unsigned) {
      struct Silent : std::exception {
        const char* what() const noexcept override { return nullptr; }
      };
      throw Silent();
    }
  };
  EXPECT_EQ(decode<ThrowsSilently>({}).error().text(), "serialize threw: an exception without a text at byte 0");
}

}  // namespace
}  // namespace caftan::wire::archive_hostile_test
