/// The values that an application file may have for `cluster.channel` and `cluster.spin`. The list in this file decides
/// which kinds of channels there are, what `caftan plan` shows, and which addresses a run uses; how a kind of channel
/// works is in libs/transport/src/channels, what spin does in docs/protocols/spin.md.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/result.hpp"
#include "caftan/base/settings.hpp"

namespace caftan::app {

/// `automatic`, then the kinds in the order of `kChannels`.
enum class ChannelChoice { automatic, ucx, shared_memory, unix_socket, tcp };

/// A kind of channel between processes.
struct ChannelFacts {
  const char* name;  ///< the kind's name in the file, and before the colon of an address
  bool is_path;      ///< addresses are paths in a folder of the run, for workers of one host; else host and port
};
/// All kinds, in the order of `ChannelChoice` after `automatic`. On a machine that lacks a kind the next one is used;
/// the last one is always there.
inline constexpr std::array kChannels{ChannelFacts{"ucx", false}, ChannelFacts{"shm", true}, ChannelFacts{"unix", true},
                                      ChannelFacts{"tcp", false}};

/// Returns the kind of channel between the processes of one host.
constexpr const ChannelFacts& channel_on_host(ChannelChoice choice) noexcept {
  if (choice == ChannelChoice::automatic) choice = ChannelChoice::shared_memory;
  return kChannels[static_cast<std::size_t>(choice) - 1];
}

/// Returns the kind of channel between hosts.
constexpr const ChannelFacts& channel_between_hosts(ChannelChoice choice) noexcept {
  return choice == ChannelChoice::ucx ? kChannels.front() : kChannels.back();
}

/// Returns what `cluster.channel` may be, for its declaration.
inline std::vector<SettingChoice> channel_choices() {
  std::vector<SettingChoice> choices;
  choices.emplace_back("auto", "shm on one host");
  for (const ChannelFacts& channel : kChannels) choices.emplace_back(channel.name);
  return choices;
}

/// How threads wait over channel shm.
struct SpinChoice {
  bool off = false;
  std::optional<base::Duration> longest;  ///< nothing: as long as it pays
  bool operator==(const SpinChoice&) const = default;
};
/// Returns what a value of `cluster.spin` means: "auto", "off" or a duration.
/// Errors: invalid_config (none of these, or a duration outside of 1us..1ms).
Result<SpinChoice> spin_choice(std::string_view text);

}  // namespace caftan::app
