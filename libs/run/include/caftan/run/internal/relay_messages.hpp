/// What a launcher and its relay on another host send each other over the standard input and output of ssh:
/// docs/protocols/launchers.md. The relay starts the processes of its host, and passes on what they and the launcher
/// send each other.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "caftan/base/error.hpp"
#include "caftan/run/internal/run_messages.hpp"

namespace caftan::run {

/// The first line that a relay writes, before all frames. It has the version of these messages.
inline constexpr const char* kRelayGreeting = "caftan relay 2\n";

// ---- launcher -> relay

/// The first frame: the processes to start.
struct BeginRelay {
  std::string run_directory{};  ///< absolute path, the same on each host
  std::string resolved{};       ///< the text of its resolved.toml
  std::vector<std::pair<std::int32_t, std::string>>
      processes{};             ///< number in the plan, and name for lists of processes
  std::int64_t silence_s = 0;  ///< LN-15: so long the launcher may be silent once a worker has lost a peer

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& run_directory& resolved& processes& silence_s;
  }
};
struct RelayCommand {
  std::int32_t process = 0;
  Command command{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& process& command;
  }
};
/// The process shall end at once.
struct KillProcess {
  std::int32_t process = 0;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& process;
  }
};
/// The launcher's sign of life.
struct LauncherAlive : WithoutFields {};
using ToRelay = std::variant<BeginRelay, RelayCommand, KillProcess, LauncherAlive>;

// ---- relay -> launcher

struct ProcessStarted {
  std::int32_t process = 0;
  std::int64_t pid = 0;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& process& pid;
  }
};
struct RelayEvent {
  std::int32_t process = 0;
  Event event{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& process& event;
  }
};
/// What a process has written to its log.
struct ProcessLog {
  std::int32_t process = 0;
  std::string text{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& process& text;
  }
};
/// A process has ended; all of its events and its log came before.
struct ProcessEnded {
  std::int32_t process = 0;
  bool by_signal = false;
  std::int32_t number = 0;  ///< as in Death

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& process& by_signal& number;
  }
};
/// The relay cannot start its processes: a full disk, say. It ends.
struct RelayFailed {
  Error error{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& error;
  }
};
using FromRelay = std::variant<ProcessStarted, RelayEvent, ProcessLog, ProcessEnded, RelayFailed>;

}  // namespace caftan::run
