#include <caftan/caftan.hpp>
#include <vector>

class Counter {  // a role: one object on one worker; its methods run one at a time
 public:
  struct Config {
    int start = 0;
  };
  static void settings(auto& s, Config& c) { s("start", c.start, "first value").range(0, 1000); }

  Counter(caftan::RoleContext&, Config config) : value_(config.start) {}

  int add(int by) { return value_ += by; }

 private:
  int value_;
};

class Driver {  // a role with run(): the application ends when every run() has returned
 public:
  struct Config {
    int rounds = 10;
  };
  static void settings(auto& s, Config& c) { s("rounds", c.rounds, "calls to each counter").at_least(1); }

  Driver(caftan::RoleContext& context, Config config)
      : context_(context), config_(config), counters_(context.uses<Counter>("counters")) {}

  caftan::Result<void> run(std::stop_token stop) {
    for (int round = 1; round <= config_.rounds && !stop.stop_requested(); ++round) {
      std::vector<caftan::Future<int>> sums;
      for (auto& counter : counters_) sums.push_back(counter.rpc_async<&Counter::add>(1));
      for (auto& sum : sums) context_.metric("sum", sum.get());  // throws RpcException: ends the run, names the worker
      context_.progress(round, config_.rounds);
    }
    return {};
  }

 private:
  caftan::RoleContext& context_;
  Config config_;
  std::vector<caftan::RRef<Counter>> counters_;
};

int main(int argc, char** argv) {
  caftan::Program program("counting");
  program.role<Counter>("counter").method<&Counter::add>("add");
  program.role<Driver>("driver").uses<Counter>("counters", caftan::at_least(1));  // so that `check` knows
  return program.main(argc, argv);  // run, check, plan, sweep, help; key=value; exit code
}
