/// A closed queueing network: tandems of queues with a switch at the end of each. A job goes through all queues of a
/// tandem, then the switch sends it to a tandem that it draws. Source: the network of OMNeT++'s studies of parallel
/// simulation.
#pragma once

#include <cstdint>
#include <deque>

#include "caftan/base/settings.hpp"
#include "caftan/sim/model.hpp"
#include "caftan/sim/statistics.hpp"

namespace caftan::cqn {

/// The keys of [roles.partition.config]. All partitions have the same.
struct CqnConfig {
  std::int64_t tandems = 120;
  std::int64_t queues = 10;
  std::int64_t jobs = 2;
  double service = 10;
  double queue_delay = 1;
  double switch_delay = 100;

  static void settings(auto& s, CqnConfig& c) {
    s("tandems", c.tandems, "lines of queues, each with a switch at its end").range(1, 1'000'000);
    s("queues", c.queues, "queues of a tandem").range(1, 1000);
    s("jobs", c.jobs, "jobs that each queue has at the start").range(0, 1'000'000);
    s("service", c.service, "mean time that a job is served").greater_than(0).unit("units");
    s("queue_delay", c.queue_delay, "time to the next queue of the tandem").at_least(0).unit("units");
    s("switch_delay", c.switch_delay, "time from a switch to a tandem: the lookahead").greater_than(0).unit("units");
  }
};

/// An event with a payload: a job arrives at a queue or a switch.
struct Job {
  std::uint64_t number = 0;

  void serialize(auto& archive, unsigned) { archive& number; }
};

/// An event of a queue for itself: the first job of its line is served.
struct Done {
  void serialize(auto&, unsigned) {}
};

/// One queue: a line of jobs, of which the first one is served.
struct Queue {
  using Events = sim::Events<Job, Done>;

  const CqnConfig* config;
  sim::LpId next;  ///< the queue or the switch behind this one
  std::deque<Job> line{};
  sim::TimeAverage length{};
  sim::Tally served{};

  void start(sim::LpContext& lp) {
    const auto jobs = static_cast<std::uint64_t>(config->jobs);
    for (std::uint64_t i = 0; i < jobs; ++i) {
      on(Job{lp.id().value * jobs + i}, lp);
    }
  }

  void on(const Job& job, sim::LpContext& lp) {
    line.push_back(job);
    length.set(lp.now(), static_cast<double>(line.size()));
    if (line.size() == 1) serve(lp);
  }

  void on(const Done&, sim::LpContext& lp) {
    served.add(1);
    lp.schedule(config->queue_delay, line.front(), next);
    line.pop_front();
    length.set(lp.now(), static_cast<double>(line.size()));
    if (!line.empty()) serve(lp);
  }

  void serve(sim::LpContext& lp) const { lp.schedule(lp.random().exponential(config->service), Done{}); }

  /// Statistics are gathered per process and merged in the order of ids. They are forgotten at the end of the warm-up.
  static void statistics(auto& s, Queue& queue) {
    s("jobs in queue", queue.length, "jobs");
    s("services", queue.served, "jobs");
  }

  void serialize(auto& archive, unsigned) { archive& line& length& served; }
};

/// What stands at the end of a tandem. It has no state.
struct Switch {
  using Events = sim::Events<Job>;

  const CqnConfig* config;

  void start(sim::LpContext&) {}

  void on(const Job& job, sim::LpContext& lp) const {
    const std::uint64_t tandem = lp.random().below(static_cast<std::uint64_t>(config->tandems));
    const std::uint64_t first_queue = tandem * static_cast<std::uint64_t>(config->queues + 1);
    lp.schedule(config->switch_delay, job, sim::LpId(first_queue));
  }

  void serialize(auto&, unsigned) {}
};

/// The model.
struct Cqn {
  using Config = CqnConfig;

  static void build(sim::Builder& builder, const Config& config) {
    builder.lookahead(config.switch_delay);
    std::uint64_t id = 0;
    for (std::int64_t tandem = 0; tandem < config.tandems; ++tandem) {
      // What is added up to the next group stays in one partition: inside of it a delay may be below the lookahead.
      builder.group();
      for (std::int64_t queue = 0; queue < config.queues; ++queue) {
        ++id;
        builder.add<Queue>([&config, id] { return Queue{&config, sim::LpId(id)}; });
      }
      ++id;
      builder.add<Switch>([&config] { return Switch{&config}; });
    }
  }
};

}  // namespace caftan::cqn
