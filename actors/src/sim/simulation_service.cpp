#include "sim/simulation_service.hpp"

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include "caftan/remote/internal/address.hpp"
#include "caftan/remote/internal/message_registry.hpp"
#include "caftan/rpc/registry.hpp"
#include "caftan/transport/internal/session.hpp"

namespace caftan::actors {

Result<void> SimulationTable::add(const Key& key, std::shared_ptr<SimPartitionPorts> ports, caf::actor actor) {
  const base::LockGuard lock(mutex_);
  if (!ended_ && entries_.try_emplace(key, Entry{std::move(ports), actor}).second) return {};
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  if (ended_) return *ended_;
  return Error(Errc::bad_arguments, "partition " + std::to_string(key.second) + " of this simulation is open already");
}

void SimulationTable::remove(const Key& key) {
  const base::LockGuard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  caf::anon_send_exit(found->second.actor, caf::exit_reason::user_shutdown);
  entries_.erase(found);
}

caf::actor SimulationTable::find(const Key& key) const {
  const base::LockGuard lock(mutex_);
  const auto found = entries_.find(key);
  return found == entries_.end() ? caf::actor() : found->second.actor;
}

void SimulationTable::on_lost(const WorkerLife& peer) {
  const base::LockGuard lock(mutex_);
  for (const auto& [key, entry] : entries_) caf::anon_send(entry.actor, SimPeerDown{peer});
}

void SimulationTable::end(const Error& reason) {
  std::map<Key, Entry> ended;
  {
    const base::LockGuard lock(mutex_);
    if (!ended_) ended_ = reason;
    ended.swap(entries_);
  }
  for (const auto& [key, entry] : ended) {
    entry.ports->end(reason);
    caf::anon_send_exit(entry.actor, caf::exit_reason::user_shutdown);
  }
}

std::optional<SimulationTable::Job> SimulationTable::begin_job(const std::shared_ptr<SimulationTable>& table) {
  const base::LockGuard lock(table->mutex_);
  if (table->ended_) return std::nullopt;
  ++table->jobs_;
  return Job(table);
}

/// Notifies under the lock, so that a waiter that gives up knows that no notification is under way.
void SimulationTable::leave() {
  const base::LockGuard lock(mutex_);
  if (--jobs_ == 0 && empty_) std::exchange(empty_, nullptr)();
}

void SimulationTable::when_empty(std::function<void()> done) {
  const base::LockGuard lock(mutex_);
  empty_ = std::move(done);
  if (jobs_ == 0 && empty_) std::exchange(empty_, nullptr)();
}

std::size_t SimulationTable::jobs() const {
  const base::LockGuard lock(mutex_);
  return jobs_;
}

void SimulationService::register_with(Registry& registry, remote::MessageRegistry& messages) {
  registry.extend(SimulationExtension::kName, std::make_shared<const SimulationExtension>(table_));
  messages.add<SimFrame>("sim.frame");
}

caf::strong_actor_ptr SimulationService::find_named(const transport::Session&, const remote::Address& name) {
  if (name.kind != remote::AddressKind::sim_partition) return nullptr;
  const caf::actor actor = table_->find({name.incarnation.value, static_cast<std::uint32_t>(name.number)});
  return actor ? caf::actor_cast<caf::strong_actor_ptr>(actor) : nullptr;
}

void SimulationService::on_session_end(const transport::Session& session, bool is_last) {
  if (is_last) table_->on_lost(session.peer().life);
}

void SimulationService::end_all(const Error& reason, StopReport&) { table_->end(reason); }

Result<std::shared_ptr<SimulationTable>> simulations_of(rpc::Caller& caller) {
  const auto extension = caller.registry().extension(SimulationExtension::kName);
  const auto* const found = dynamic_cast<const SimulationExtension*>(extension.get());
  if (!found) return Error(Errc::unsupported, caller.name(), "this worker has no simulations");
  return found->table();
}

}  // namespace caftan::actors
