// How the methods of one object share it: serial, exclusive, concurrent, and what `brief` promises.
#include <caftan/caftan.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

class Agent;
/// Runs at the observer, and calls the agent back.
int play(const caftan::RRef<Agent>& agent, int steps);

class Agent {
 public:
  int choose(int observation) {
    ++choices_;
    return observation % 2;
  }
  int choices() const { return choices_; }
  int episode(caftan::Worker& worker, const caftan::RRef<Agent>& self, int steps) {
    return worker.rpc_sync<&play>("observer", self, steps);  // the turn is free meanwhile
  }
  int episode_alone(caftan::Worker& worker, const caftan::RRef<Agent>& self, int steps) {
    return episode(worker, self, steps);
  }

 private:
  int choices_ = 0;  // no mutex: methods take turns
};

int play(const caftan::RRef<Agent>& agent, int steps) {
  int ones = 0;
  for (int step = 0; step < steps; ++step) ones += agent.rpc_sync<&Agent::choose>(step);
  return ones;
}

int square(int x) { return x * x; }
/// Breaks the promise of `brief`: waits for another worker.
int square_elsewhere(caftan::Worker& worker, int x) { return worker.rpc_sync<&square>("observer", x); }

caftan::Registry functions() {
  caftan::Registry registry;
  registry.add<Agent>("agent")
      .constructor<>()
      .method<&Agent::choose>("choose")
      .method<&Agent::episode>("episode")
      .exclusive<&Agent::episode_alone>("episode_alone")
      .concurrent<&Agent::choices>("choices", caftan::brief);
  registry.add<&play>("play");
  registry.add<&square>("square", caftan::brief);
  registry.add<&square_elsewhere>("square_elsewhere", caftan::brief);
  return registry;
}

std::unique_ptr<caftan::Worker> launch(const std::string& name, const std::string& agent) {
  caftan::WorkerOptions options;
  options.name = name;
  options.world = {{"agent", agent}, {"observer", ""}};
  return caftan::Worker::launch(std::move(options), functions()).value();
}

bool methods_take_turns(const caftan::RRef<Agent>& agent) {
  std::vector<caftan::Future<int>> choices;
  for (int i = 0; i < 100; ++i) choices.push_back(agent.rpc_async<&Agent::choose>(i));
  caftan::wait_all(std::move(choices));
  return agent.rpc_sync<&Agent::choices>() == 100;
}

/// Returns whether the innermost cause says that the call would have waited for ever.
bool would_deadlock(const caftan::Result<int>& result) {
  if (result) return false;
  const caftan::Error* cause = &result.error();
  while (cause->cause()) cause = cause->cause();
  std::printf("%s\n", cause->message().c_str());
  return cause->code() == caftan::Errc::would_deadlock;
}

int main() {
  const auto there = launch("agent", "tcp:127.0.0.1:0");
  const auto here = launch("observer", there->address());
  there->wait_until_ready().value();
  here->wait_until_ready().value();
  const auto agent = here->remote<Agent>("agent");
  const bool right = methods_take_turns(agent) && agent.rpc_sync<&Agent::episode>(agent, 10) == 5 &&
                     would_deadlock(agent.try_rpc_sync<&Agent::episode_alone>(agent, 10)) &&
                     would_deadlock(here->try_rpc_sync<&square_elsewhere>("agent", 3));
  return right ? 0 : 1;
}
