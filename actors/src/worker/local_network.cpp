#include "worker/local_network.hpp"

#include <string_view>
#include <unordered_set>

namespace caftan {

LocalNetwork::LocalNetwork()
    : LocalNetwork([](transport::PollingExecutor& executor, const std::string&, const std::string&) {
        return transport::make_loopback_pair(executor);
      }) {}
LocalNetwork::LocalNetwork(Connect connect) : state_(std::make_unique<State>()) {
  state_->connect = std::move(connect);
}
LocalNetwork::~LocalNetwork() = default;

Result<std::vector<LocalNetwork::State::Neighbour>> LocalNetwork::State::enter(
    const std::string& name, const std::shared_ptr<actors::Joiner>& joiner, const std::vector<WorkerAddress>& members) {
  // Session numbers of a pair start where no number of the self-session is.
  constexpr std::uint64_t kFirstConnection = 1000;
  std::vector<Neighbour> neighbours;
  std::unordered_set<std::string_view> names;
  for (const WorkerAddress& member : members) names.insert(member.name);
  const base::LockGuard lock(mutex_);
  auto& slot = members_[name];
  if (!slot.expired()) return Error(Errc::invalid_config, "a worker '" + name + "' is in this network already");
  slot = joiner;
  for (const auto& [other_name, weak] : members_) {
    const auto other = weak.lock();
    if (!other || other == joiner) continue;
    if (!names.contains(other_name)) continue;
    neighbours.push_back({other, kFirstConnection + next_connection_++});
  }
  return neighbours;
}

}  // namespace caftan
