#include "caftan/wire/archive.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace caftan::wire::archive_test {
namespace {

template <class T>
T round_trip(const T& value) {
  const Result<Bytes> bytes = encode(value);
  EXPECT_TRUE(bytes) << bytes.error().message();
  T back = detail::blank<T>();
  const Result<void> read = decode_into(*bytes, back);
  EXPECT_TRUE(read) << read.error().message();
  return back;
}

std::vector<unsigned> numbers(const Bytes& bytes) {
  std::vector<unsigned> out;
  for (const std::byte b : bytes) out.push_back(std::to_integer<unsigned>(b));
  return out;
}

enum class Color : std::uint16_t { red = 1, green = 2 };
enum class Checked : std::uint8_t { one = 1, two = 2 };
constexpr bool is_valid(Checked c) { return c == Checked::one || c == Checked::two; }

TEST(Archive, IntegersAreLittleEndianInTheirOwnSize) {
  EXPECT_THAT(numbers(*encode(std::uint32_t{0x01020304})), ::testing::ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(numbers(*encode(std::int16_t{-2})), ::testing::ElementsAre(0xfe, 0xff));
  EXPECT_THAT(numbers(*encode(Color::green)), ::testing::ElementsAre(2, 0));
  EXPECT_THAT(numbers(*encode(true)), ::testing::ElementsAre(1));
}

TEST(Archive, EveryArithmeticTypeComesBackAtItsLimits) {
  const auto check = []<class T>(T) {
    for (const T value : {std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max(), T{0}, T{1}}) {
      EXPECT_EQ(round_trip(value), value);
    }
  };
  std::apply([&](auto... zero) { (check(zero), ...); },
             std::tuple<char, signed char, unsigned char, short, unsigned short, int, unsigned, long, unsigned long,
                        long long, unsigned long long, float, double, wchar_t, char8_t, char16_t, char32_t>());
  EXPECT_TRUE(round_trip(true));
  EXPECT_FALSE(round_trip(false));
}

TEST(Archive, FloatingPointTravelsAsItsBits) {
  const std::uint64_t bits = 0x7ff4dead'beef0001;  // a signalling NaN with a payload
  double nan = 0;
  std::memcpy(&nan, &bits, sizeof nan);
  const Result<Bytes> bytes = encode(nan);
  EXPECT_EQ(std::memcmp(bytes->data(), &bits, sizeof bits), 0);
  EXPECT_EQ(round_trip(std::numeric_limits<double>::denorm_min()), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(round_trip(-std::numeric_limits<float>::infinity()), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::signbit(round_trip(-0.0)));
}

TEST(Archive, CountsTakeOneByteBelow128) {
  EXPECT_THAT(numbers(*encode(std::string("ab"))), ::testing::ElementsAre(2, 'a', 'b'));
  EXPECT_EQ(encode(std::string(127, 'x'))->size(), 128u);
  EXPECT_EQ(encode(std::string(128, 'x'))->size(), 130u);
  for (const std::size_t size : {0u, 1u, 127u, 128u, 16383u, 16384u, 70000u}) {
    EXPECT_EQ(round_trip(std::string(size, 'y')).size(), size);
  }
}

TEST(Archive, StandardTypesComeBackEqual) {
  EXPECT_EQ(round_trip(std::vector<int>{1, -2, 3}), (std::vector<int>{1, -2, 3}));
  EXPECT_EQ(round_trip(std::vector<double>{}), std::vector<double>{});
  EXPECT_EQ(round_trip(std::vector<bool>{true, false, true}), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(round_trip(std::vector<Color>{Color::red}), std::vector<Color>{Color::red});
  EXPECT_EQ(round_trip(std::array<float, 3>{1, 2, 3}), (std::array<float, 3>{1, 2, 3}));
  EXPECT_EQ(round_trip(std::array<bool, 2>{true, false}), (std::array<bool, 2>{true, false}));
  EXPECT_EQ(round_trip(std::deque<std::string>{"a", "b"}), (std::deque<std::string>{"a", "b"}));
  EXPECT_EQ(round_trip(std::list<int>{3, 2, 1}), (std::list<int>{3, 2, 1}));
  EXPECT_EQ(round_trip(std::set<std::string>{"x", "y"}), (std::set<std::string>{"x", "y"}));
  EXPECT_EQ(round_trip(std::multiset<int>{1, 1, 2}), (std::multiset<int>{1, 1, 2}));
  EXPECT_EQ(round_trip(std::unordered_set<int>{1, 5}), (std::unordered_set<int>{1, 5}));
  const std::map<std::string, std::vector<int>> map{{"a", {1}}, {"b", {}}};
  EXPECT_EQ(round_trip(map), map);
  const std::unordered_map<int, std::string> hashed{{1, "one"}, {2, "two"}};
  EXPECT_EQ(round_trip(hashed), hashed);
  const std::multimap<int, int> many{{1, 1}, {1, 2}};
  EXPECT_EQ(round_trip(many), many);
  EXPECT_EQ(round_trip(std::pair(1, std::string("p"))), std::pair(1, std::string("p")));
  const std::tuple<int, std::string, double> tuple{1, "t", 2.5};
  EXPECT_EQ(round_trip(tuple), tuple);
  EXPECT_EQ(round_trip(std::optional<int>()), std::nullopt);
  EXPECT_EQ(round_trip(std::optional<std::string>("o")), "o");
  using Choice = std::variant<std::monostate, int, std::string>;
  for (const Choice& choice : {Choice(), Choice(7), Choice("seven")}) EXPECT_EQ(round_trip(choice), choice);
  EXPECT_EQ(round_trip(std::chrono::milliseconds(-5)), std::chrono::milliseconds(-5));
  EXPECT_EQ(round_trip(std::complex<float>(1, -2)), std::complex<float>(1, -2));
  EXPECT_EQ(round_trip(std::u16string(u"\u00e9")), u"\u00e9");
}

TEST(Archive, SequencesOfElementsWithoutBytesComeBack) {
  EXPECT_EQ(round_trip(std::vector<std::monostate>(5)).size(), 5u);
  EXPECT_EQ((round_trip(std::vector<std::array<int, 0>>(3)).size()), 3u);
  EXPECT_EQ(round_trip(std::vector<std::tuple<>>(130)).size(), 130u);
}

TEST(Archive, ViewsAreWrittenLikeTheContainersTheyView) {
  const std::vector<int> values{1, 2, 3};
  EXPECT_EQ(*encode(std::span<const int>(values)), *encode(values));
  EXPECT_EQ(*encode(std::string_view("abc")), *encode(std::string("abc")));
}

TEST(Archive, SeveralValuesTravelByReference) {
  const int a = 4;
  const std::string b = "five";
  const Result<Bytes> bytes = encode(std::tie(a, b));
  int a_back = 0;
  std::string b_back;
  ASSERT_TRUE(decode_into(*bytes, std::tie(a_back, b_back)));
  EXPECT_EQ(a_back, 4);
  EXPECT_EQ(b_back, "five");
}

TEST(Archive, IdsErrorsAndResultsComeBack) {
  const RRefId id{WorkerId{3}, Incarnation{0x1122334455667788}, 9};
  EXPECT_EQ(round_trip(id), id);
  EXPECT_EQ(round_trip(CallId{5}), CallId{5});
  const auto root = std::make_shared<const Error>(Errc::io_error, "w2", "disk");
  const Error error(Errc::peer_down, "w1", "gone", std::make_shared<const Error>(Errc::timeout, "w3", "late", root));
  EXPECT_EQ(round_trip(error).message(), error.message());
  EXPECT_EQ(*round_trip(Result<int>(5)), 5);
  EXPECT_EQ(round_trip(Result<int>(error)).error().message(), error.message());
  EXPECT_TRUE(round_trip(Result<void>()));
  EXPECT_EQ(round_trip(Result<void>(error)).error().code(), Errc::peer_down);
  EXPECT_EQ(round_trip(std::vector<Result<int>>{1, error}).size(), 2u);
}

TEST(Archive, AChainOfManyCausesIsCutNotRefused) {
  std::shared_ptr<const Error> cause;
  for (int i = 0; i < 100; ++i) cause = std::make_shared<const Error>(Errc::timeout, "", std::to_string(i), cause);
  const Error back = round_trip(Error(Errc::peer_down, "", "top", cause));
  std::vector<std::string> causes;
  for (const Error* c = back.cause(); c; c = c->cause()) causes.push_back(c->text());
  ASSERT_EQ(causes.size(), 16u);
  EXPECT_EQ(causes.front(), "99");
  EXPECT_EQ(causes[14], "85");
  EXPECT_EQ(causes.back(), "0") << "what all of it comes from";
}

TEST(Archive, TheBufferHoldsExactlyWhatWasWrittenAfterEachStatement) {
  Bytes bytes;
  OutArchive to(bytes);
  to << std::uint8_t{1};
  EXPECT_EQ(bytes.size(), 1u);
  to << std::vector<std::string>{"ab", "c"};
  EXPECT_EQ(bytes.size(), 1u + 1 + 3 + 2);
  to.save_binary("xyz", 3);
  EXPECT_EQ(bytes.size(), 10u);
  EXPECT_EQ(to.position(), 10u);
}

TEST(Archive, U19_KindsOfErrorsComeBackBesideThem) {
  const auto root = std::make_shared<const Error>(Error(Errc::user_error, "w2", "empty").of_kind("no_funds"));
  const auto middle = std::make_shared<const Error>(Errc::remote_exception, "w1", "a call in it failed", root);
  const Error error = Error(Errc::user_error, "", "no", middle).of_kind("declined");
  const Error bare = round_trip(error);
  EXPECT_EQ(bare.kind(), "");
  Error whole = bare;
  add_kinds(whole, encode_kinds(error)).value();
  EXPECT_EQ(whole.kind(), "declined");
  EXPECT_EQ(whole.cause()->kind(), "");
  EXPECT_EQ(whole.cause()->cause()->kind(), "no_funds");
  EXPECT_EQ(whole.message(), error.message());
  EXPECT_TRUE(encode_kinds(Error(Errc::timeout, "late")).empty());
  // A chain of causes that is too long is cut when it is encoded; the kinds of the errors that are kept still arrive.
  std::shared_ptr<const Error> cause = root;
  for (int i = 0; i < 30; ++i) cause = std::make_shared<const Error>(Errc::timeout, "", std::to_string(i), cause);
  const Error deep(Errc::peer_down, "", "top", cause);
  Error back = round_trip(deep);
  add_kinds(back, encode_kinds(deep)).value();
  const Error* last = &back;
  while (last->cause()) last = last->cause();
  EXPECT_EQ(last->kind(), "no_funds");
}

TEST(Archive, U19_KindsThatDoNotFitTheirErrorAreRefused) {
  const Error error(Errc::user_error, "no");
  const auto refused = [&](const std::vector<std::string>& kinds) {
    Error of_kinds = error;
    const auto result = add_kinds(of_kinds, encode(kinds).value());
    return !result && result.error().code() == Errc::malformed_payload;
  };
  EXPECT_FALSE(refused({"one"}));
  EXPECT_FALSE(refused({}));
  EXPECT_TRUE(refused({"one", "of no error"}));
  EXPECT_TRUE(refused({std::string(Error::kMostKind + 1, 'x')}));
  Error other = error;
  EXPECT_EQ(add_kinds(other, {}).error().code(), Errc::malformed_payload);
}

TEST(Archive, EncodingAppendsAndLeavesTheBufferAloneOnError) {
  Bytes bytes(3, std::byte{7});
  ASSERT_TRUE(encode_into(bytes, 1));
  EXPECT_EQ(bytes.size(), 7u);
  struct Valueless {
    Valueless() = default;
    Valueless(const Valueless&) { throw std::runtime_error("no copy"); }
    Valueless& operator=(const Valueless&) = default;
    void serialize(OutArchive&, unsigned) { throw std::runtime_error("cannot"); }
  };
  const Result<void> refused = encode_into(bytes, std::tuple<int, Valueless>());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::unsupported);
  EXPECT_EQ(refused.error().text(), "serialize threw: cannot");
  EXPECT_EQ(bytes.size(), 7u);
}

TEST(Archive, RandomNestedValuesComeBackEqual) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) {
    std::map<std::string, std::vector<std::optional<std::pair<double, std::string>>>> value;
    for (std::uint64_t n = random() % 5; n > 0; --n) {
      auto& row = value[std::string(random() % 40, static_cast<char>('a' + random() % 26))];
      for (std::uint64_t m = random() % 6; m > 0; --m) {
        row.emplace_back();
        if (random() % 2) row.back().emplace(static_cast<double>(random()), std::string(random() % 300, 'z'));
      }
    }
    EXPECT_EQ(round_trip(value), value);
  }
}

TEST(Archive, ACheckedEnumRefusesNumbersItDoesNotHave) {
  EXPECT_EQ(round_trip(Checked::two), Checked::two);
  EXPECT_EQ(round_trip(std::vector<Checked>{Checked::one}), std::vector<Checked>{Checked::one});
  const std::array bad{std::byte{3}};
  EXPECT_EQ(decode<Checked>(bad).error().text(), "an enum has no such number at byte 1");
}

struct Lender {
  int used = 0;
};
struct Borrower {};

}  // namespace
}  // namespace caftan::wire::archive_test

namespace caftan::wire {

template <>
struct Codec<archive_test::Borrower> {
  static void save(OutArchive& to, const archive_test::Borrower&) {
    auto* lender = to.companion<archive_test::Lender>();
    if (!lender) throw EncodeError(Error(Errc::unsupported, "no lender"));
    ++lender->used;
  }
  static void load(InArchive& from, archive_test::Borrower&) {
    auto* lender = from.companion<archive_test::Lender>();
    if (!lender) throw DecodeError("no lender", Errc::wrong_type);
    ++lender->used;
  }
};

}  // namespace caftan::wire

namespace caftan::wire::archive_test {
namespace {

TEST(Archive, CodecsReachTheirCompanionsInNestedValues) {
  Lender lender;
  int other = 0;
  const std::vector<Borrower> value(3);
  const Result<Bytes> bytes = encode(value, &other, &lender);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(lender.used, 3);
  ASSERT_TRUE(decode<std::vector<Borrower>>(*bytes, &lender));
  EXPECT_EQ(lender.used, 6);
  EXPECT_EQ(encode(value).error().text(), "no lender");
  EXPECT_EQ(decode<std::vector<Borrower>>(*bytes).error().code(), Errc::wrong_type);
}

}  // namespace
}  // namespace caftan::wire::archive_test
