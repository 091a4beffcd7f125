// A bank with one counter: customers come, wait in a line, are served and leave.
#include <cstdio>
#include <deque>

#include "caftan/sim/sequential.hpp"

namespace sim = caftan::sim;

struct BankConfig {
  double between = 1.0;  // mean time between two customers
  double service = 0.8;  // mean time at the counter
};

struct Arrival {
  void serialize(auto&, unsigned) {}
};
struct Served {
  void serialize(auto&, unsigned) {}
};

struct Counter {
  using Events = sim::Events<Arrival, Served>;

  const BankConfig* config;
  std::deque<sim::Time> line{};  // when each customer has come
  sim::TimeAverage length{};
  sim::Tally wait{};

  void start(sim::LpContext& lp) { lp.schedule(lp.random("arrivals").exponential(config->between), Arrival{}); }

  void on(const Arrival&, sim::LpContext& lp) {
    lp.schedule(lp.random("arrivals").exponential(config->between), Arrival{});
    line.push_back(lp.now());
    length.set(lp.now(), static_cast<double>(line.size()));
    lp.record("length", static_cast<double>(line.size()));
    if (line.size() == 1) serve(lp);
  }

  void on(const Served&, sim::LpContext& lp) {
    wait.add(lp.now().units() - line.front().units());
    line.pop_front();
    length.set(lp.now(), static_cast<double>(line.size()));
    if (!line.empty()) serve(lp);
  }

  void serve(sim::LpContext& lp) { lp.schedule(lp.random("service").exponential(config->service), Served{}); }

  static void statistics(auto& s, Counter& c) {
    s("customers in line", c.length, "customers");
    s("time in the bank", c.wait, "units");
  }
  void serialize(auto& archive, unsigned) { archive& line& length& wait; }
};

struct Bank {
  using Config = BankConfig;
  static void build(sim::Builder& b, const Config& config) {
    b.add<Counter>([&config] { return Counter{&config}; });
  }
};

int main() {
  const BankConfig config;
  const auto run = sim::run_sequential<Bank>(
      config, {.end_time = 10'000,
               .seed = 1,
               .warmup = 100,
               .record = {.series = {"length"}, .every = sim::Time{100 * sim::kTicksPerUnit}}});
  if (!run) {
    std::fprintf(stderr, "%s\n", run.error().message().c_str());
    return 1;
  }
  std::printf("%s\n%s\nfingerprint %s\n", sim::scalars_csv(run->statistics).c_str(),
              sim::series_csv(run->records).c_str(), run->fingerprint.c_str());
}
