/// PHOLD, the usual benchmark of simulators: processes that send each other events. Each event makes one more, so there
/// are as many pending events at the end as at the start. Source: Fujimoto, Performance of Time Warp under synthetic
/// workloads, 1990.
///
/// A model is three plain things, top down: events, logical processes, and a function that builds it.
#pragma once

#include <cstdint>

#include "caftan/base/clock.hpp"
#include "caftan/base/settings.hpp"
#include "caftan/sim/model.hpp"

namespace caftan::phold {

/// The keys of [roles.partition.config]. All partitions have the same.
struct PholdConfig {
  std::int64_t processes = 1024;
  std::int64_t start_events = 1;
  double remote = 0.25;
  double mean = 1;
  double lookahead = 1;
  base::Duration work{};

  static void settings(auto& s, PholdConfig& c) {
    using namespace std::chrono_literals;
    s("processes", c.processes, "logical processes over all partitions").range(1, 100'000'000);
    s("start_events", c.start_events, "events of each process at the start").range(0, 1'000'000);
    s("remote", c.remote, "share of events for a random process; the others are for the process itself").range(0, 1);
    s("mean", c.mean, "of the exponential part of a delay").greater_than(0).unit("units");
    s("lookahead", c.lookahead, "least delay of every event").greater_than(0).unit("units");
    s("work", c.work, "time that the handling of an event takes beside").range(0s, 1s);
  }
};

/// An event: any value that the archives can write. This one has nothing but its time.
struct Ball {
  void serialize(auto&, unsigned) {}
};

/// A logical process: a plain object, which is alone while it handles an event.
struct Process {
  /// The types of events that it handles.
  using Events = sim::Events<Ball>;

  const PholdConfig* config;
  std::uint64_t seen = 0;

  /// Called once, at time 0.
  void start(sim::LpContext& lp) {
    for (std::int64_t i = 0; i < config->start_events; ++i) {
      send(lp, lp.id());
    }
  }

  /// Called for each event.
  void on(const Ball&, sim::LpContext& lp) {
    ++seen;
    work();
    // Random numbers of a process depend on the seed and on the process alone, not on the partition that it is in.
    const bool is_remote = lp.random().uniform() < config->remote;
    send(lp, is_remote ? sim::LpId(lp.random().below(static_cast<std::uint64_t>(config->processes))) : lp.id());
  }

  void send(sim::LpContext& lp, sim::LpId to) const {
    const double delay = config->lookahead + lp.random().exponential(config->mean);
    lp.schedule(delay, Ball{}, to);
  }

  /// Computes for a while, as the handlers of a real model do.
  void work() const {
    if (config->work == base::Duration::zero()) return;
    const base::SteadyClock clock;
    const base::TimePoint end = clock.now() + config->work;
    while (clock.now() < end) {
    }
  }

  /// The state: what is in it goes into checkpoints and into the fingerprint.
  void serialize(auto& archive, unsigned) { archive& seen; }
};

/// The model.
struct Phold {
  using Config = PholdConfig;

  /// Adds all processes. The function that makes one is called for those of this partition only.
  static void build(sim::Builder& builder, const Config& config) {
    // No event between two processes has a smaller delay: so far partitions may run ahead of each other.
    builder.lookahead(config.lookahead);
    builder.add<Process>(static_cast<std::uint64_t>(config.processes),
                         [&config](sim::LpId) { return Process{&config}; });
  }
};

}  // namespace caftan::phold
