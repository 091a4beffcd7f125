// Errors that leave a process fit into what carries them.
#include "shortened.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace caftan::actors {
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

}  // namespace
}  // namespace caftan::actors
