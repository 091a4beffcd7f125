/// The reports of the processes of a run, and the commands of the launcher. They cross as single packets of a local
/// socket pair; within one process they are handed over as they are.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "caftan/base/error.hpp"
#include "caftan/wire/sent_frames.hpp"

namespace caftan::actors {

/// Of cluster.heartbeat: the silence after which a peer, or a process of this launcher, is lost.
inline constexpr int kBeatsUntilLost = 5;

enum class RunEventKind : std::uint8_t {
  here = 0,     ///< listens; text: its address, of the worker where the others meet
  ready,        ///< all others have come; text: the kinds of its channels
  progress,     ///< done, total, text
  metrics,      ///< values, oldest first
  report,       ///< text: a line for standard output
  fingerprint,  ///< text
  returned,     ///< its run() ended; error
  failed,       ///< it could not start or construct its role; error
  peer_lost,    ///< text: the peer's name; error
  traffic,      ///< sent: what it has sent until all roles here had returned
  left,         ///< it has said bye to all
  making,       ///< its role's constructor begins
  made,         ///< its role's constructor has returned
  refused,      ///< a connection was refused while it waited for the others; error
  alive,        ///< nothing but a sign of life of its process, each heartbeat (RN-1)
  answered,     ///< its process has read a stop or a leave (RN-4)
  duplicate,    ///< it was refused, since another worker of its name is connected; error
};
constexpr bool is_valid(RunEventKind kind) noexcept { return kind <= RunEventKind::duplicate; }

/// Worker -> launcher.
struct RunEvent {
  RunEventKind kind = RunEventKind::here;
  std::uint32_t worker = 0;  ///< its number in the plan
  std::int64_t done = 0;
  std::int64_t total = 0;
  std::string text{};
  std::vector<std::pair<std::string, double>> values{};
  Error error{};  ///< Errc::ok = none
  std::vector<SentFrames> sent{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& kind& worker& done& total& text& values& error& sent;
  }
};

enum class RunCommandKind : std::uint8_t {
  assign = 0,  ///< which workers this process is; the first command
  stop,        ///< asks run() to return
  leave,       ///< ends the workers, then the process
};
constexpr bool is_valid(RunCommandKind kind) noexcept { return kind <= RunCommandKind::leave; }

/// Launcher -> process.
struct RunCommand {
  RunCommandKind kind = RunCommandKind::stop;
  std::string run_directory{};  ///< absolute; its resolved.toml is the application
  std::vector<std::uint32_t> workers{};
  std::vector<std::uint32_t> launched{};                     ///< all that this launcher starts
  std::vector<std::pair<std::string, std::string>> world{};  ///< name and address, the coordinator first
  std::string secret{};
  Error error{};  ///< of leave: what the run failed of, for the other hosts; Errc::ok = nothing

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& kind& run_directory& workers& launched& world& secret& error;
  }
};

}  // namespace caftan::actors
