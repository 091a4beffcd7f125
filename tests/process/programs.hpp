/// The programs under test and application files for them.
#pragma once

#include <string>

namespace caftan::test {

inline const std::string kCaftan = CAFTAN_COMMAND;
inline const std::string kCounting = CAFTAN_COUNTING;
inline const std::string kTicking = CAFTAN_TICKING;
inline const std::string kRefusing = CAFTAN_REFUSING;  ///< runs its arguments where no process reads another's memory
inline const std::string kConfigs = CAFTAN_CONFIGS;

inline constexpr const char* kCountingFile =
    "caftan = 1\n[roles.counter]\ntype = \"counter\"\nreplicas = 2\n[roles.driver]\ntype = \"driver\"\n"
    "[roles.driver.config]\nrounds = 100\n[roles.driver.uses]\ncounters = \"counter\"\n";

/// @param more  appended: further tables
inline std::string ticking_file(const std::string& run = "", const std::string& more = "") {
  return "caftan = 1\n[run]\nname = \"ticking\"\n" + run +
         "[roles.ticker]\ntype = \"ticker\"\n[roles.ticker.uses]\nechoes = \"echo\"\n"
         "[roles.echo]\ntype = \"echo\"\nreplicas = 2\n" +
         more;
}

}  // namespace caftan::test
