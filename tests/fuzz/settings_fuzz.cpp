// Reads arbitrary text as a settings file with one field of each kind; lines that begin with "!" are overrides. What is
// accepted must be written as text that reads back as the same.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "caftan/base/internal/read_settings.hpp"
#include "caftan/base/settings_io.hpp"

namespace {

using namespace caftan;

void require(bool holds) {
  if (!holds) std::abort();
}

struct Inner {
  double rate = 0.5;
  std::optional<int> limit;
  static void settings(auto& s, Inner& c) {
    s("rate", c.rate, "a rate").range(0.0, 1.0);
    s("limit", c.limit, "a limit").at_least(1);
  }
};

struct Everything {
  bool on = true;
  std::uint16_t count = 3;
  std::string name = "x";
  std::chrono::nanoseconds wait{1000};
  ByteSize size = ByteSize::mib(1);
  std::vector<std::string> names;
  std::vector<std::int64_t> numbers;
  std::string mode = "fast";
  Inner inner;
  static void settings(auto& s, Everything& c) {
    s("on", c.on, "a switch");
    s("count", c.count, "a number").range(1, 1000);
    s("name", c.name, "a name");
    s("wait", c.wait, "a time");
    s("size", c.size, "a size");
    s("names", c.names, "names");
    s("numbers", c.numbers, "numbers");
    s("mode", c.mode, "a choice").one_of({"fast", "slow"});
    s("inner", c.inner, "a table");
  }
};

/// Returns what `text` gives, written as text again; "" if it is refused.
std::string read_and_write(std::string_view text, const std::vector<std::string>& overrides) {
  Diagnostics diagnostics("fuzz.toml");
  diagnostics.set_source(std::string(text));
  diagnostics.set_overrides(overrides);
  SettingsNode root = parse_settings(text, diagnostics);
  for (std::size_t i = 0; i < overrides.size(); ++i) {
    apply_override(root, overrides[i], static_cast<int>(i), diagnostics);
  }
  Everything values;
  auto fields = bind_settings<Everything, Everything>(values);
  read_settings(root, fields, ReadSettings{}, diagnostics);
  require(diagnostics.render(true).empty() == diagnostics.entries().empty());
  if (!diagnostics.ok()) {
    require(diagnostics.to_error().code() == Errc::invalid_config);
    return "";
  }
  require(values.count >= 1 && values.count <= 1000);
  require(values.inner.rate >= 0.0 && values.inner.rate <= 1.0);
  return dump_settings(fields, "");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text;
  std::vector<std::string> overrides;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end);
    if (line.front() == '!') {
      overrides.emplace_back(line.substr(1));
    } else {
      text += line;
    }
  }
  const std::string written = read_and_write(text, overrides);
  if (!written.empty()) require(read_and_write(written, {}) == written);
  return 0;
}
