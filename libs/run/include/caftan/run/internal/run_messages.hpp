/// The reports of the workers of a run, and the commands of its launcher: docs/protocols/run.md. Between processes they
/// cross as single packets of a local socket pair; within one process they are handed over as they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "caftan/base/error.hpp"
#include "caftan/wire/sent_frames.hpp"

namespace caftan::run {

/// After how many periods of cluster.heartbeat without a sign of life a peer, or a process of this launcher, is lost.
inline constexpr int kBeatsUntilLost = 5;
/// The same of a process whose signs of life come through ssh. A network that was cut for nearly 5 periods may need as
/// long again before ssh's connection carries bytes: TCP repeats what was lost at doubled intervals.
inline constexpr int kFarBeatsUntilLost = 12;

/// Base of messages without fields.
struct WithoutFields {
  template <class Archive>
  void serialize(Archive&, unsigned) {}
};

// ---- what a worker reports

/// The worker listens.
struct Here {
  std::string address{};  ///< where other members dial it

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& address;
  }
};
/// The worker has a session with every other member.
struct Ready : WithoutFields {};
/// `Making`: the constructor of the worker's role begins. `Made`: it has returned.
struct Making : WithoutFields {};
struct Made : WithoutFields {};
/// How far its role is.
struct Progress {
  std::int64_t done = 0;
  std::int64_t total = 0;  ///< 0 = unknown
  std::string text{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& done& total& text;
  }
};
struct Metric {
  std::string name{};
  double value = 0;
  std::optional<std::int64_t> step{};  ///< a row of curve.csv, too

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& name& value& step;
  }
};
struct Metrics {
  std::vector<Metric> values{};  ///< the oldest first

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& values;
  }
};
/// A line for standard output.
struct Report {
  std::string text{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& text;
  }
};
struct Fingerprint {
  std::string text{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& text;
  }
};
/// run() of the worker's role has returned.
struct Returned {
  Error error{};  ///< Errc::ok: without an error

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& error;
  }
};
/// The worker could not start, or its role could not be constructed.
struct Failed {
  Error error{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& error;
  }
};
/// The worker has no session with a peer any more.
struct PeerLost {
  std::string peer{};  ///< its name
  Error error{};       ///< why; as of WorkerOptions::on_peer_down

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& peer& error;
  }
};
/// The run() of a driving worker of another launcher has returned without an error (RN-21).
struct PeerReturned {
  std::string peer{};  ///< its name

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& peer;
  }
};
/// The worker has refused a connection while it waited for the other members.
struct Refused {
  Error error{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& error;
  }
};
/// A member has refused this worker, since another worker of its name is connected.
struct Duplicate {
  Error error{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& error;
  }
};
/// What the worker had sent when all roles of its process had returned.
struct Traffic {
  std::vector<SentFrames> sent{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& sent;
  }
};
/// The worker has said bye to all members.
struct Left : WithoutFields {};
/// A sign of life of the worker's process (RN-1).
struct Alive : WithoutFields {};
/// The worker's process has read a `Stop` or a `Leave` (RN-4).
struct Answered : WithoutFields {};

using EventBody = std::variant<Here, Ready, Making, Made, Progress, Metrics, Report, Fingerprint, Returned, Failed,
                               PeerLost, PeerReturned, Refused, Duplicate, Traffic, Left, Alive, Answered>;

/// Worker -> launcher.
struct Event {
  std::uint32_t worker = 0;  ///< its number in the plan
  EventBody body{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& worker& body;
  }
};

// ---- what a launcher asks of a process

/// Which workers the process is; the first command.
struct Assign {
  std::string run_directory{};  ///< absolute path of the run's folder; its resolved.toml is the application
  std::vector<std::uint32_t> workers{};
  std::vector<std::uint32_t> launched{};                       ///< all that this launcher starts
  std::vector<std::pair<std::string, std::string>> members{};  ///< name and address, the coordinator first
  std::string secret{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& run_directory& workers& launched& members& secret;
  }
};
/// The run() of each role shall return.
struct Stop : WithoutFields {};
/// The workers shall end, then the process.
struct Leave {
  Error error{};  ///< why the run failed, for the other hosts; Errc::ok = it has not failed

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& error;
  }
};

/// Launcher -> process.
using Command = std::variant<Assign, Stop, Leave>;

}  // namespace caftan::run
