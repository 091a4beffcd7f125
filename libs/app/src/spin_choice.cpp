#include <chrono>
#include <string>

#include "caftan/app/internal/channel_choice.hpp"
#include "caftan/base/settings_io.hpp"

namespace caftan::app {

Result<SpinChoice> spin_choice(std::string_view text) {
  using namespace std::chrono_literals;
  if (text == "auto") return SpinChoice{};
  if (text == "off") return SpinChoice{.off = true, .longest = {}};
  const auto duration = parse_duration(text);
  if (duration && *duration >= base::Duration(1us).count() && *duration <= base::Duration(1ms).count()) {
    return SpinChoice{.off = false, .longest = base::Duration(*duration)};
  }
  return Error(Errc::invalid_config, "spin must be \"auto\", \"off\" or a duration of 1us..1ms such as \"20us\", is " +
                                         quote_toml(std::string(text)));
}

}  // namespace caftan::app
