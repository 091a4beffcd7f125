/// The autograd contexts of one worker: finds and makes them with their actors, and the actors of their functions.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include <caf/actor.hpp>

#include "autograd/autograd_messages.hpp"
#include "autograd/autograd_ports.hpp"
#include "caftan/autograd/internal/context_host.hpp"
#include "caftan/autograd/internal/context_table.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/remote/internal/actor_host.hpp"
#include "service/member_ports.hpp"
#include "service/service.hpp"

namespace caftan::actors {

/// What of autograd is alive at one worker, for tests.
struct AutogradCounts {
  std::size_t contexts = 0;    ///< with an actor
  std::size_t places = 0;      ///< places at which messages of contexts are found
  std::size_t functions = 0;   ///< actors of SendFunctions and RecvFunctions
  std::size_t jobs = 0;        ///< graphs of passes
  std::size_t open = 0;        ///< as ContextTable::open_contexts
  std::size_t remembered = 0;  ///< as ContextTable::remembered
  bool operator==(const AutogradCounts&) const = default;
};

/// Threads: any, all methods.
class AutogradHost final : public autograd::ContextHost, public Service, public RecvFunctionPorts, public ContextPorts {
 public:
  AutogradHost(MemberPorts& ports, WorkerLife self) : ports_(ports), self_(self), table_(self) {}

  std::vector<autograd::ContextInfo> list() const;
  AutogradCounts counts() const;

  // ContextHost
  Result<std::shared_ptr<autograd::ContextRecord>> create() override;
  Result<std::shared_ptr<autograd::ContextRecord>> enter(const ContextId& context, const Peer& from) override;
  void release(const ContextId& context) noexcept override;
  void learned(const ContextId& context) override;
  Future<void> start_pass(const std::shared_ptr<autograd::ContextRecord>& context, autograd::PassStart start) override;
  WorkerLife self() const noexcept override { return self_; }
  std::optional<WorkerLife> life_of(const Peer& peer) const override;
  std::string name_of(WorkerId peer) const override;

  // Service
  void register_with(Registry& registry, remote::MessageRegistry& messages) override;
  caf::strong_actor_ptr find_named(const transport::Session& session, const remote::Address& name) override;
  caf::strong_actor_ptr stand_in(const remote::Address& name) override;
  void on_session_end(const transport::Session& session, bool is_last) override;
  void end_all(const Error& reason, StopReport& given_up) override;
  void when_empty(std::function<void()> done) override;
  /// Returns the number of contexts that have an actor plus the number of graphs of passes.
  std::size_t in_use() const override;

  // RecvFunctionPorts and ContextPorts
  caf::strong_actor_ptr proxy(const WorkerLife& peer, const remote::Address& name) override;
  void gradient_not_sent(const autograd::PassId& pass, const Error& error) override;
  const std::string& name() const noexcept override { return ports_.name(); }
  base::Executor& executor() override { return ports_.executor(); }
  void log(const std::string& line) const override { ports_.log(line); }
  std::string peer_name(WorkerId peer) override;
  caf::actor recv_function(const ContextId& context, AutogradMessageId message) override;
  void drop_functions(const ContextId& context) override;
  void job_begins(const ContextId& context) noexcept override;
  void job_ends(const ContextId& context) noexcept override;
  autograd::ReleasedRange context_over(const ContextId& context) override;
  void context_ended(const ContextId& context) override;
  void learn_released(const WorkerLife& from, const autograd::Release& release) override;
  std::optional<autograd::Send> refuse(const WorkerLife& from, const autograd::PassMessage& message) const override;

  /// The future of a pass that was started here was cancelled.
  void cancelled(const ContextId& context, std::weak_ptr<rpc::FutureCore> pass);

 private:
  /// The actors of a context's SendFunctions and RecvFunctions that the open pass has addressed. A message that this
  /// worker has sent to itself has one of each.
  struct FunctionActors {
    std::unordered_map<AutogradMessageId, caf::actor> sends;
    std::unordered_map<AutogradMessageId, caf::actor> recvs;
  };
  struct Entry {
    std::shared_ptr<autograd::ContextRecord> record;
    caf::actor actor;
    FunctionActors functions;
    std::size_t jobs = 0;
    bool over = false;
  };

  std::shared_ptr<autograd::ContextRecord> make_entry_locked(const ContextId& id) CAFTAN_REQUIRES(mutex_);
  void notify_if_empty_locked() noexcept CAFTAN_REQUIRES(mutex_);
  bool tell(const ContextId& context, ContextEvent event);
  caf::strong_actor_ptr find_send_function(const transport::Session& session, const AutogradMessageId& message);

  MemberPorts& ports_;
  const WorkerLife self_;
  mutable base::Mutex mutex_;
  // The actor that replies to messages of contexts that are not open; made when the first such message arrives.
  caf::actor closed_contexts_ CAFTAN_GUARDED_BY(mutex_);
  autograd::ContextTable table_ CAFTAN_GUARDED_BY(mutex_);
  std::unordered_map<ContextId, Entry> entries_ CAFTAN_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, ContextId> places_ CAFTAN_GUARDED_BY(mutex_);  // ContextRecord::place
  std::uint64_t next_place_ CAFTAN_GUARDED_BY(mutex_) = 1;
  // Graphs of passes of all contexts, also of contexts that have ended.
  std::size_t jobs_ CAFTAN_GUARDED_BY(mutex_) = 0;
  std::function<void()> empty_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::actors
