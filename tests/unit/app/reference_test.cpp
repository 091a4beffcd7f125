// docs/configuration.md is what the declarations say. To renew it, run this test with CAFTAN_WRITE_REFERENCE=1.
#include "caftan/app/internal/reference.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "role_types.hpp"

namespace caftan::app::testing::reference_test {
namespace {

TEST(Reference, TheCommittedPageIsTheGeneratedOne) {
  const std::filesystem::path file = std::filesystem::path(CAFTAN_SOURCE_DIR) / "docs" / "configuration.md";
  const std::string page = reference_page(make_shipped_types());
  if (std::getenv("CAFTAN_WRITE_REFERENCE") != nullptr) std::ofstream(file, std::ios::binary) << page;
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream committed;
  committed << stream.rdbuf();
  EXPECT_EQ(committed.str(), page);
}

TEST(Reference, NamesEveryTable) {
  const std::string page = reference_page(make_types());
  for (const char* heading : {"[run]", "[roles.NAME]", "[cluster]", "[hosts.NAME]", "[tls]", "[limits]", "[output]"}) {
    EXPECT_NE(page.find("## " + std::string(heading)), std::string::npos) << heading;
  }
  EXPECT_NE(page.find("| `seed` | integer | 0..2^63-1 | 1 |"), std::string::npos);
  EXPECT_NE(page.find("| `server` | `parameter_server.server` | exactly 1 |"), std::string::npos);
}

}  // namespace
}  // namespace caftan::app::testing::reference_test
