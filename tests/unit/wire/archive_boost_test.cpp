#include <gtest/gtest.h>

#include <boost/serialization/array.hpp>
#include <boost/serialization/base_object.hpp>
#include <boost/serialization/binary_object.hpp>
#include <boost/serialization/forward_list.hpp>
#include <boost/serialization/list.hpp>
#include <boost/serialization/split_free.hpp>
#include <boost/serialization/split_member.hpp>
#include <boost/serialization/vector.hpp>

#include "caftan/wire/archive.hpp"

// Types as authors write them for Boost.Serialization, without knowledge of Caftan's archives.
namespace elsewhere {

struct Intrusive {
  int a = 0;
  std::string b;
  std::vector<double> c;
  bool operator==(const Intrusive&) const = default;
  template <class Archive>
  void serialize(Archive& archive, const unsigned /*version*/) {
    archive& a& BOOST_SERIALIZATION_NVP(b);
    archive& c;
  }
};

class Private {
 public:
  Private() = default;
  explicit Private(int value) : value_(value) {}
  bool operator==(const Private&) const = default;

 private:
  friend class boost::serialization::access;
  template <class Archive>
  void save(Archive& archive, unsigned) const {
    const int doubled = 2 * value_;
    archive << doubled;
  }
  template <class Archive>
  void load(Archive& archive, unsigned) {
    archive >> value_;
    value_ /= 2;
  }
  BOOST_SERIALIZATION_SPLIT_MEMBER()
  int value_ = 0;
};

struct NonIntrusive {
  int x = 0;
  bool operator==(const NonIntrusive&) const = default;
};
template <class Archive>
void serialize(Archive& archive, NonIntrusive& value, const unsigned) {
  archive& boost::serialization::make_nvp("x", value.x);
}

struct SplitFree {
  std::string text;
  bool operator==(const SplitFree&) const = default;
};
template <class Archive>
void save(Archive& archive, const SplitFree& value, const unsigned) {
  archive << value.text;
}
template <class Archive>
void load(Archive& archive, SplitFree& value, const unsigned) {
  archive >> value.text;
}

struct Base {
  int base = 0;
  bool operator==(const Base&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& base;
  }
};
struct Derived : Base {
  int derived = 0;
  bool operator==(const Derived&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& boost::serialization::base_object<Base>(*this);
    archive& derived;
  }
};

struct Versioned {
  int kept = 0;
  unsigned seen = 99;
  template <class Archive>
  void serialize(Archive& archive, const unsigned version) {
    archive& kept;
    seen = version;
  }
};

struct Blit {
  std::int32_t a = 0;
  float b = 0;
  bool operator==(const Blit&) const = default;
};

struct RawBytes {
  std::array<int, 4> numbers{};
  int plain[3] = {};
  double heap[2] = {};
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& boost::serialization::make_binary_object(numbers.data(), sizeof numbers);
    archive& plain& boost::serialization::make_array(heap, 2);
  }
};

}  // namespace elsewhere

BOOST_SERIALIZATION_SPLIT_FREE(elsewhere::SplitFree)
BOOST_CLASS_VERSION(elsewhere::Versioned, 3)
BOOST_IS_BITWISE_SERIALIZABLE(elsewhere::Blit)

namespace caftan::wire::archive_boost_test {
namespace {

template <class T>
T round_trip(const T& value) {
  const Result<Bytes> bytes = encode(value);
  EXPECT_TRUE(bytes) << bytes.error().message();
  Result<T> back = decode<T>(*bytes);
  EXPECT_TRUE(back) << back.error().message();
  return *std::move(back);
}

TEST(ArchiveBoost, EachWayOfDeclaringSerializeWorks) {
  const elsewhere::Intrusive intrusive{1, "b", {1.5, 2.5}};
  EXPECT_EQ(round_trip(intrusive), intrusive);
  EXPECT_EQ(round_trip(elsewhere::Private(21)), elsewhere::Private(21));
  EXPECT_EQ(round_trip(elsewhere::NonIntrusive{4}), elsewhere::NonIntrusive{4});
  EXPECT_EQ(round_trip(elsewhere::SplitFree{"free"}), elsewhere::SplitFree{"free"});
  elsewhere::Derived derived;
  derived.base = 1;
  derived.derived = 2;
  EXPECT_EQ(round_trip(derived), derived);
}

TEST(ArchiveBoost, ClassesNestInContainersAndContainersInClasses) {
  const std::map<std::string, std::vector<elsewhere::Intrusive>> value{{"k", {{1, "x", {}}, {2, "y", {3}}}}};
  EXPECT_EQ(round_trip(value), value);
}

TEST(ArchiveBoost, AClassAddsNothingToItsFields) {
  EXPECT_EQ(encode(elsewhere::NonIntrusive{4})->size(), sizeof(int));
  EXPECT_EQ(*encode(elsewhere::Intrusive{1, "b", {2}}),
            *encode(std::tuple(1, std::string("b"), std::vector<double>{2})));
}

TEST(ArchiveBoost, AContainerOfBoostsOwnHeadersTravels) {
  const std::forward_list<elsewhere::NonIntrusive> value{{1}, {2}, {3}};
  EXPECT_EQ(round_trip(value), value);
}

TEST(ArchiveBoost, WrappersWriteWhatTheyWrap) {
  elsewhere::RawBytes value;
  value.numbers = {1, 2, 3, 4};
  value.plain[2] = 5;
  value.heap[1] = 0.5;
  EXPECT_EQ(encode(value)->size(), sizeof value.numbers + sizeof value.plain + sizeof value.heap);
  const elsewhere::RawBytes back = round_trip(value);
  EXPECT_EQ(back.numbers, value.numbers);
  EXPECT_EQ(back.plain[2], 5);
  EXPECT_EQ(back.heap[1], 0.5);
}

TEST(ArchiveBoost, BitwiseSerializableClassesAreCopiedAtOnce) {
  const std::vector<elsewhere::Blit> value{{1, 2}, {3, 4}};
  EXPECT_EQ(encode(value)->size(), 1 + 2 * sizeof(elsewhere::Blit));
}

TEST(ArchiveBoost, AClassVersionIsReadAndANewerOneRefused) {
  const elsewhere::Versioned value{7, 0};
  Result<Bytes> bytes = encode(value);
  EXPECT_EQ(bytes->size(), 1 + sizeof(int));
  EXPECT_EQ(decode<elsewhere::Versioned>(*bytes)->seen, 3u);
  (*bytes)[0] = std::byte{1};
  EXPECT_EQ(decode<elsewhere::Versioned>(*bytes)->seen, 1u);
  (*bytes)[0] = std::byte{4};
  const Result<elsewhere::Versioned> newer = decode<elsewhere::Versioned>(*bytes);
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().text(), "written by a newer version of its class at byte 1");
}

TEST(ArchiveBoost, TheArchiveConceptsAreModelled) {
  static_assert(OutArchive::is_saving::value && !OutArchive::is_loading::value);
  static_assert(!InArchive::is_saving::value && InArchive::is_loading::value);
  Bytes bytes;
  OutArchive to(bytes);
  to.register_type<elsewhere::Derived>();
  to.register_type(static_cast<elsewhere::Derived*>(nullptr));
  to & 1 & 2;
  to.save_binary("ab", 2);
  InArchive from(bytes);
  from.register_type<elsewhere::Derived>();
  int a = 0;
  int b = 0;
  char text[2];
  from& a& b;
  from.load_binary(text, 2);
  from.reset_object_address(&a, &b);
  from.delete_created_pointers();
  EXPECT_EQ(from.get_library_version(), to.get_library_version());
  EXPECT_EQ(a + b, 3);
  EXPECT_EQ(std::string_view(text, 2), "ab");
}

}  // namespace
}  // namespace caftan::wire::archive_boost_test
