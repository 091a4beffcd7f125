// Errors that leave a process fit into what carries them.
#include "caftan/wire/internal/shortened.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "caftan/wire/archive.hpp"
#include "caftan/wire/frame.hpp"

namespace caftan::wire::shortened_test {
namespace {

TEST(Shortened, KeepsCodesWorkersAndTheBeginningsOfTexts) {
  const std::string text(200'000, 'x');
  const auto cause = std::make_shared<const Error>(Errc::peer_down, "observer-0", text);
  const Error brief = shortened(Error(Errc::backward_failed, "agent", text, cause), 1000);
  EXPECT_EQ(brief.code(), Errc::backward_failed);
  EXPECT_EQ(brief.worker(), "agent");
  EXPECT_EQ(brief.text(), text.substr(0, 1000));
  ASSERT_NE(brief.cause(), nullptr);
  EXPECT_EQ(brief.cause()->code(), Errc::peer_down);
  EXPECT_EQ(brief.cause()->worker(), "observer-0");
  EXPECT_EQ(brief.cause()->text(), text.substr(0, 500));
}

TEST(Shortened, OfManyCausesKeepsAFewAndTheInnermost) {
  Error error(Errc::remote_exception, "agent", "0");
  for (int i = 1; i < 100; ++i) {
    error = Error(Errc::remote_exception, "agent", std::to_string(i), std::make_shared<const Error>(std::move(error)));
  }
  const Error brief = shortened(error, 1000);
  std::vector<std::string> causes;
  for (const Error* cause = brief.cause(); cause; cause = cause->cause()) causes.push_back(cause->text());
  EXPECT_EQ(causes, (std::vector<std::string>{"98", "97", "96", "95", "0"}));
}

/// Returns the bytes that an error takes in a reply: the error itself and a section with its kinds.
std::size_t carried(const Error& error) {
  return encode(error).value().size() + kSectionHeaderSize + encode_kinds(error).size();
}

TEST(Fitting, WI20_FitsIntoAnyLimitAndKeepsTheCode) {
  const std::string name(64, 'n');
  const std::string text(5000, 'x');
  const std::string kind(Error::kMostKind, 'k');
  std::shared_ptr<const Error> cause;
  for (int i = 0; i < 20; ++i) {
    cause = std::make_shared<const Error>(Error(Errc::remote_exception, name, text, cause).of_kind(kind));
  }
  const Error error = Error(Errc::user_error, name, text, cause).of_kind(kind);
  for (std::size_t most = 14; most < 14'000; most += most < 1100 ? 1 : 97) {
    const Error brief = fitting(error, most);
    if (!brief.kind().empty()) {
      ASSERT_LE(carried(brief), most) << most;
    }
    ASSERT_LE(encode(brief)->size(), most);
    ASSERT_EQ(brief.code(), Errc::user_error);
    if (most >= 1024) {
      EXPECT_EQ(brief.kind(), kind) << most;
      EXPECT_EQ(brief.worker(), name);
      EXPECT_NE(brief.cause(), nullptr);
    }
  }
  EXPECT_EQ(fitting(error, 100'000).text().size(), 4096U);
}

TEST(Fitting, WI20_LeavesWhatFitsAsItIs) {
  const Error error(Errc::timeout, "w", "late");
  EXPECT_EQ(fitting(error, 1024).message(), error.message());
}

}  // namespace
}  // namespace caftan::wire::shortened_test
