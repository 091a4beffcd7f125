#include "caftan/base/error.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/ids.hpp"
#include "caftan/base/result.hpp"

namespace caftan::error_test {
namespace {

TEST(Error, EveryCodeHasAName) {
  for (int code = 0; code <= static_cast<int>(Errc::lookahead_violation); ++code) {
    EXPECT_NE(to_string(static_cast<Errc>(code)), "unknown") << code;
  }
  EXPECT_EQ(to_string(static_cast<Errc>(255)), "unknown");
  EXPECT_EQ(to_string(Errc::ok), "ok");
  EXPECT_EQ(to_string(Errc::peer_down), "peer_down");
}

TEST(Error, AtFillsInTheWorkerOnlyWhereItWasEmpty) {
  const Error error(Errc::timeout, "no answer");
  EXPECT_EQ(error.at("observer-0").worker(), "observer-0");
  EXPECT_EQ(error.at("observer-0").at("agent").worker(), "observer-0");
  EXPECT_EQ(error.worker(), "") << "the original stays as it was";
}

TEST(Error, MessageNamesCodeWorkerTextAndCause) {
  const Error error(Errc::backward_failed, "agent", "pass 3", std::make_shared<const Error>(Errc::peer_down, "gone"));
  for (const char* part : {"backward_failed", "agent", "pass 3", "peer_down", "gone"}) {
    EXPECT_NE(error.message().find(part), std::string::npos) << part << " in " << error.message();
  }
}

TEST(Error, U19_AKindStaysWhateverElseIsFilledIn) {
  const Error error = user_error("bank.no_funds", "3 are missing");
  EXPECT_EQ(error.code(), Errc::user_error);
  EXPECT_EQ(error.at("bank").kind(), "bank.no_funds");
  EXPECT_EQ(error.with_code(Errc::remote_exception).kind(), "bank.no_funds");
  EXPECT_EQ(error.with_code(Errc::remote_exception).code(), Errc::remote_exception);
  EXPECT_EQ(error.at("bank").message(), "user_error bank.no_funds: bank: 3 are missing");
  EXPECT_EQ(Error(Errc::timeout, "late").kind(), "");
  EXPECT_EQ(user_error(std::string(500, 'x'), "").kind().size(), Error::kMostKind);
}

TEST(Result, M_TheErrorOfAValueIsAnExceptionAndNotTheEndOfTheProcess) {
  const Result<int> value(3);
  EXPECT_THROW((void)value.error(), std::logic_error);
  EXPECT_THROW((void)Result<void>().error(), std::logic_error);
  EXPECT_EQ(Result<int>(Error(Errc::timeout, "late")).error().code(), Errc::timeout);
  EXPECT_EQ(Result<void>(Error(Errc::timeout, "late")).error().code(), Errc::timeout);
}

TEST(Result, ValueThrowsTheErrorAtTheUsersEdge) {
  EXPECT_EQ(Result<int>(3).value(), 3);
  try {
    Result<int>(Error(Errc::overloaded, "full")).value();
    FAIL() << "no exception";
  } catch (const RpcException& exception) {
    EXPECT_EQ(exception.error().code(), Errc::overloaded);
  }
  EXPECT_TRUE(Result<void>());
  EXPECT_THROW(Result<void>(Error(Errc::timeout, "late")).value(), RpcException);
}

TEST(Result, U16_ValueOrGivesTheOtherValueOnlyWhereThereIsAnError) {
  const Result<int> three(3);
  const Result<int> late(Error(Errc::timeout, "late"));
  EXPECT_EQ(three.value_or(7), 3);
  EXPECT_EQ(late.value_or(7), 7);
  Result<std::unique_ptr<int>> moved(std::make_unique<int>(4));
  EXPECT_EQ(*std::move(moved).value_or(nullptr), 4);
  EXPECT_EQ(Result<std::unique_ptr<int>>(Error(Errc::timeout, "late")).value_or(nullptr), nullptr);
}

template <class T>
std::string printed(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

template <class T>
concept CanBePrinted = requires(std::ostream& out, const T& value) {
  out << value;
};
static_assert(CanBePrinted<Result<std::string>> && !CanBePrinted<Result<std::vector<int>>>);

TEST(Result, U16_PrintsItsValueOrItsError) {
  const Error error(Errc::peer_down, "server", "it is gone");
  EXPECT_EQ(printed(error), "peer_down: server: it is gone");
  EXPECT_EQ(printed(Error()), "ok");
  EXPECT_EQ(printed(Result<int>(3)), "3");
  EXPECT_EQ(printed(Result<int>(error)), error.message());
  EXPECT_EQ(printed(Result<void>()), "ok");
  EXPECT_EQ(printed(Result<void>(error)), error.message());
}

TEST(Ids, OfTwoLivesOfAWorkerDiffer) {
  const RRefId first{.worker = {1}, .incarnation = {7}, .number = 1};
  const RRefId second{.worker = {1}, .incarnation = {8}, .number = 1};
  EXPECT_NE(first, second);
  EXPECT_FALSE(RRefId());
  EXPECT_EQ(to_string(first), "1.1");
}

TEST(ManualClock, MovesOnlyByAdvance) {
  base::ManualClock clock;
  const base::TimePoint start = clock.now();
  EXPECT_EQ(clock.now(), start);
  clock.advance(std::chrono::milliseconds(5));
  EXPECT_EQ(clock.now() - start, std::chrono::milliseconds(5));
}

}  // namespace
}  // namespace caftan::error_test
