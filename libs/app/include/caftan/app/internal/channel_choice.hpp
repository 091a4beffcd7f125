/// The values that an application file may have for `cluster.channel`. The list in this file decides which values there
/// are, what `caftan plan` shows, and which addresses a run uses; how a kind of channel works is in
/// libs/transport/src/channels.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "caftan/base/settings.hpp"

namespace caftan::app {

/// `automatic`, then the kinds in the order of `kChannels`.
enum class ChannelChoice { automatic, shared_memory, unix_socket, tcp };

/// A kind of channel between processes.
struct ChannelFacts {
  const char* name;  ///< the kind's name in the file, and before the colon of an address
  bool is_path;      ///< addresses are paths in a folder of the run, for workers of one host; else host and port
};
/// All kinds, in the order of `ChannelChoice` after `automatic`.
inline constexpr std::array kChannels{ChannelFacts{"shm", true}, ChannelFacts{"unix", true},
                                      ChannelFacts{"tcp", false}};

/// Returns the kind of channel between the processes of one host.
constexpr const ChannelFacts& channel_on_host(ChannelChoice choice) noexcept {
  if (choice == ChannelChoice::automatic) choice = ChannelChoice::unix_socket;
  return kChannels[static_cast<std::size_t>(choice) - 1];
}

/// Returns what `cluster.channel` may be, for its declaration.
inline std::vector<SettingChoice> channel_choices() {
  std::vector<SettingChoice> choices;
  choices.emplace_back("auto", "unix on one host");
  for (const ChannelFacts& channel : kChannels) choices.emplace_back(channel.name);
  return choices;
}

}  // namespace caftan::app
