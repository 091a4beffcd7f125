// Crashes, lost connections, reconnects and killed actors.
#include <algorithm>

#include "rref_model_world.hpp"

namespace caftan::rpc::model {
namespace {

std::string connection_name(const Connection& connection, int number) {
  return "connection " + std::to_string(number + 1) + " (" + name(connection.end[0]) + ", " + name(connection.end[1]) +
         ")";
}

}  // namespace

void World::connect(int first, int second) {
  Connection connection;
  connection.end = {std::min(first, second), std::max(first, second)};
  connection.life = {workers_[connection.end[0]].life, workers_[connection.end[1]].life};
  current_[{connection.end[0], connection.end[1]}] = static_cast<int>(connections_.size());
  connections_.push_back(std::move(connection));
}

// Cuts a connection; messages that were received completely before the loss still arrive.
void World::cut(int number, std::uint32_t first_kept, std::uint32_t second_kept) {
  Connection& connection = connections_[number];
  if (connection.cut) return;
  connection.cut = true;
  connection.lane[0].resize(first_kept % (connection.lane[0].size() + 1), Frame{});
  connection.lane[1].resize(second_kept % (connection.lane[1].size() + 1), Frame{});
  say(connection_name(connection, number) + " is lost; " + std::to_string(connection.lane[0].size()) + " and " +
      std::to_string(connection.lane[1].size()) + " frames still arrive");
}

void World::lose(const Step& step, bool declare) {
  std::vector<std::pair<int, int>> ends;
  for (const auto& [pair, number] : current_) {
    const Connection& connection = connections_[number];
    if (connection.loopback()) continue;
    for (int side = 0; side < 2; ++side) {
      const Worker& worker = workers_[connection.end[side]];
      if (worker.alive && worker.life == connection.life[side] && !connection.declared[side]) {
        ends.emplace_back(number, side);
      }
    }
  }
  if (ends.empty()) return;
  // Ends of connections that are cut already declare the loss first; if there is none, an end declares a loss of its
  // own accord.
  const auto noticed =
      std::stable_partition(ends.begin(), ends.end(), [&](const auto& end) { return connections_[end.first].cut; });
  if (declare && noticed != ends.begin()) ends.erase(noticed, ends.end());
  const auto [number, side] = ends[step.a % ends.size()];
  cut(number, step.b, step.c);
  if (declare) end_session(connections_[number].end[side], number);
}

void World::reconnect(const Step& step) {
  std::vector<std::pair<int, int>> pairs;
  for (const auto& [pair, number] : current_) {
    const Connection& connection = connections_[number];
    if (!workers_[pair.first].alive || !workers_[pair.second].alive || connection.loopback()) continue;
    bool over = true;
    for (int side = 0; side < 2; ++side) {
      const bool same_life = workers_[connection.end[side]].life == connection.life[side];
      over = over && (connection.declared[side] || !same_life);
    }
    if (over) pairs.push_back(pair);
  }
  if (pairs.empty()) return;
  const auto [first, second] = pairs[step.a % pairs.size()];
  connect(first, second);
  say(name(first) + " and " + name(second) +
      " connect again: " + connection_name(connections_.back(), static_cast<int>(connections_.size()) - 1));
  for (const int worker : {first, second}) {
    for (auto& [fork, actor] : workers_[worker].users) {
      const int owner = values_[actor.value].owner;
      if (owner == first || owner == second) post_user(worker, fork, {.kind = Mail::Kind::session_opened});
    }
  }
}

void World::crash(int worker, const Step& step) {
  say(name(worker) + " crashes");
  const Incarnation life = workers_[worker].life;
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    const Connection& connection = connections_[i];
    const bool ours = (connection.end[0] == worker && connection.life[0] == life) ||
                      (connection.end[1] == worker && connection.life[1] == life);
    if (ours && !connection.cut) cut(static_cast<int>(i), step.b >> (i % 8), step.c >> (i % 8));
  }
  workers_[worker] = Worker{};
  workers_[worker].alive = false;
}

// Kills the actor of one fork, chosen by the step among all that live.
void World::kill(const Step& step) {
  std::vector<std::pair<int, ForkId>> forks;
  for (const int worker : alive()) {
    for (const auto& [fork, actor] : workers_[worker].users) forks.emplace_back(worker, fork);
  }
  if (forks.empty()) return;
  const auto [worker, fork] = forks[step.a % forks.size()];
  say("the actor of fork " + caftan::to_string(fork) + " on " + name(worker) + " is killed");
  truth_[fork].killed = true;
  const int waiting = workers_[worker].users.at(fork).waiting_call;
  end_fork(worker, fork);
  if (waiting >= 0) fail_call(worker, waiting, Errc::peer_down);
}

}  // namespace caftan::rpc::model
