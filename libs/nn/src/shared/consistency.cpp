#include "caftan/nn/consistency.hpp"

#include <array>
#include <string>
#include <vector>

#include "caftan/base/settings_diagnostics.hpp"

namespace caftan::nn {
namespace {

constexpr std::uint32_t kMostTrainers = 65536;
constexpr std::chrono::hours kLongestWait{24};
constexpr std::array<std::string_view, 3> kNames = {"locked", "versioned", "sync"};

Error wrong(const std::string& text) { return Error(Errc::invalid_config, text); }

Error of_other_mode(const std::string& key, std::string_view its_mode, ConsistencyMode mode) {
  return wrong(key + " is a key of mode '" + std::string(its_mode) + "', and the mode is '" +
               std::string(to_string(mode)) + "': take the key out, or set mode = \"" + std::string(its_mode) + "\"");
}

Result<void> check_quorum(const ConsistencyOptions& options, std::uint32_t trainers) {
  if (options.quorum.has_value() != options.straggler_timeout.has_value()) {
    return wrong(options.quorum ? "quorum without straggler_timeout: say how long a quorum waits for the others"
                                : "straggler_timeout without quorum: say how many trainers close a round");
  }
  if (options.quorum && (*options.quorum == 0 || *options.quorum > trainers)) {
    return wrong("quorum is " + std::to_string(*options.quorum) + ", with " + std::to_string(trainers) +
                 " trainers it is 1 to " + std::to_string(trainers));
  }
  if (options.straggler_timeout &&
      (*options.straggler_timeout < std::chrono::nanoseconds(0) || *options.straggler_timeout > kLongestWait)) {
    return wrong("straggler_timeout is " + std::to_string(options.straggler_timeout->count()) +
                 " ns, it is 0 to 24 hours");
  }
  return {};
}

}  // namespace

std::string_view to_string(ConsistencyMode mode) noexcept { return kNames[static_cast<std::size_t>(mode)]; }

Result<ConsistencyMode> parse_consistency_mode(std::string_view text) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == text) return static_cast<ConsistencyMode>(i);
  }
  const std::vector<std::string> names(kNames.begin(), kNames.end());
  return wrong("no consistency mode '" + std::string(text) + "'" + did_you_mean(text, names) +
               " (modes: locked, versioned, sync)");
}

Result<void> check_consistency(const ConsistencyOptions& options, std::uint32_t trainers) {
  if (trainers == 0) return wrong("a shared module without a trainer");
  if (trainers > kMostTrainers) {
    return wrong("trainers is " + std::to_string(trainers) + ", it is 1 to " + std::to_string(kMostTrainers));
  }
  if (options.lease != LeaseOrder::queue && options.mode != ConsistencyMode::locked) {
    return of_other_mode("lease", "locked", options.mode);
  }
  if (options.max_staleness && options.mode != ConsistencyMode::versioned) {
    return of_other_mode("max_staleness", "versioned", options.mode);
  }
  if (options.mode != ConsistencyMode::sync) {
    if (options.quorum) return of_other_mode("quorum", "sync", options.mode);
    if (options.straggler_timeout) return of_other_mode("straggler_timeout", "sync", options.mode);
  }
  return check_quorum(options, trainers);
}

}  // namespace caftan::nn
