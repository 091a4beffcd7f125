// Banks with one counter each: customers wait in a line, are served, and walk to another bank.
#include <caftan/caftan.hpp>
#include <deque>

namespace sim = caftan::sim;

struct BanksConfig {
  int banks = 8;
  int customers = 5;
  double service = 1.0;
  double walk = 4.0;

  static void settings(auto& s, BanksConfig& c) {
    s("banks", c.banks, "how many there are").at_least(1);
    s("customers", c.customers, "of each bank at the start").at_least(0);
    s("service", c.service, "mean time at the counter").greater_than(0);
    s("walk", c.walk, "least time from one bank to another").greater_than(0);
  }
};

struct Arrival {
  std::uint64_t customer = 0;
  void serialize(auto& archive, unsigned) { archive& customer; }
};
struct Served {
  void serialize(auto&, unsigned) {}
};

class Bank {
 public:
  using Events = sim::Events<Arrival, Served>;
  explicit Bank(const BanksConfig& config) : config_(&config) {}

  void start(sim::LpContext& lp) {
    const auto customers = static_cast<std::uint64_t>(config_->customers);
    for (std::uint64_t i = 0; i < customers; ++i) on(Arrival{lp.id().value * customers + i}, lp);
  }

  void on(const Arrival& arrival, sim::LpContext& lp) {
    line_.push_back({arrival.customer, lp.now()});
    note(lp);
    if (line_.size() == 1) serve(lp);
  }

  void on(const Served&, sim::LpContext& lp) {
    const Waiting served = line_.front();
    line_.pop_front();
    stay_.add(lp.now().units() - served.since.units());
    note(lp);
    if (!line_.empty()) serve(lp);
    walk(served.customer, lp);
  }

  static void statistics(auto& s, Bank& bank) {
    s("customers in line", bank.length_, "customers");
    s("time in a bank", bank.stay_, "units");
  }
  void serialize(auto& archive, unsigned) { archive& line_& length_& stay_; }

 private:
  struct Waiting {
    std::uint64_t customer = 0;
    sim::Time since{};
    void serialize(auto& archive, unsigned) { archive& customer& since; }
  };

  void serve(sim::LpContext& lp) const { lp.schedule(lp.random("service").exponential(config_->service), Served{}); }

  void walk(std::uint64_t customer, sim::LpContext& lp) const {
    const double time = config_->walk + lp.random("walk").exponential(1.0);
    const sim::LpId bank(lp.random("walk").below(static_cast<std::uint64_t>(config_->banks)));
    lp.schedule(time, Arrival{customer}, bank);
  }

  void note(sim::LpContext& lp) {
    length_.set(lp.now(), static_cast<double>(line_.size()));
    lp.record("line", static_cast<double>(line_.size()));
  }

  const BanksConfig* config_;
  std::deque<Waiting> line_;
  sim::TimeAverage length_;
  sim::Tally stay_;
};

struct Banks {
  using Config = BanksConfig;
  static void build(sim::Builder& builder, const Config& config) {
    builder.lookahead(config.walk);
    builder.add<Bank>(static_cast<std::uint64_t>(config.banks), [&config](sim::LpId) { return Bank(config); });
  }
};

int main(int argc, char** argv) {
  caftan::Program program("simulation");
  sim::add<Banks>(program, "banks");
  return program.main(argc, argv);
}
