#include "caftan/actors/role_context.hpp"

#include <cstddef>
#include <string>
#include <vector>

#include "caftan/app/seeds.hpp"
#include "caftan/base/settings_diagnostics.hpp"
#include "role/role_state.hpp"
#include "worker/worker_core.hpp"

namespace caftan {

RoleContext::RoleContext(std::shared_ptr<actors::RoleState> state)
    : CallSite(state->caller), state_(std::move(state)) {}
RoleContext::~RoleContext() = default;

const std::string& RoleContext::name() const noexcept { return state_->facts.worker; }
const std::string& RoleContext::role() const noexcept { return state_->facts.role; }
int RoleContext::replica() const noexcept { return state_->facts.replica; }
int RoleContext::replicas() const noexcept { return state_->facts.replicas; }
bool RoleContext::deterministic() const noexcept { return state_->facts.deterministic; }
std::stop_token RoleContext::stop_token() const noexcept { return state_->stop.get_token(); }
const rl::Environments& RoleContext::environments() const noexcept { return *state_->environments; }

const std::filesystem::path& RoleContext::output_directory() const noexcept { return state_->facts.output_directory; }

std::uint64_t RoleContext::run_seed() const noexcept { return state_->facts.root_seed; }

std::uint64_t RoleContext::seed(std::string_view purpose) const noexcept {
  const actors::RoleFacts& facts = state_->facts;
  return app::stream_seed(facts.root_seed, facts.role, static_cast<std::uint32_t>(facts.replica), purpose);
}

bool RoleContext::goes_on_without(std::string_view key) const {
  static_cast<void>(workers_of(key));  // throws for a use that is not declared
  return state_->facts.may_be_lost.contains(key);
}

Result<void> RoleContext::set_max_batch_size(const char* tag, std::size_t size) const {
  const std::shared_ptr<rpc::Caller> worker = state_->caller.lock();
  if (!worker) return Error(Errc::shut_down, name(), "this worker has ended");
  return actors::WorkerCore::of(worker->worker()).set_max_batch_size(tag, size);
}

void RoleContext::metric(std::string_view name, double value, MetricOptions options) const {
  state_->reporter->metric(name, value, options.step);
}
void RoleContext::progress(std::int64_t done, std::int64_t total, std::string text) const {
  state_->reporter->progress(done, total, std::move(text));
}
void RoleContext::report(std::string_view line) const { state_->reporter->send(run::Report{std::string(line)}); }
void RoleContext::fingerprint(std::string_view fingerprint) const {
  state_->reporter->send(run::Fingerprint{std::string(fingerprint)});
}
void RoleContext::log(std::string_view line) const { state_->log.info(line); }

const std::vector<std::string>& RoleContext::workers_of(std::string_view key) const {
  const auto& uses = state_->facts.uses;
  const auto found = uses.find(key);
  if (found != uses.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [name, workers] : uses) known.push_back(name);
  const std::string meant = did_you_mean(key, known);
  const std::string declare = ". Declare it in main: program.role<...>(...).uses<...>(\"" + std::string(key) + "\")";
  throw RpcException(
      Error(Errc::bad_arguments, name(),
            "role '" + role() + "' has no use '" + std::string(key) + "'" + (meant.empty() ? declare : meant)));
}

/// Throws unless the file gives the use one replica.
void RoleContext::check_single(std::string_view key) const {
  const std::size_t replicas = workers_of(key).size();
  if (replicas == 1) return;
  const std::string quoted = "(\"" + std::string(key) + "\")";
  throw RpcException(Error(Errc::bad_arguments, name(),
                           "use<...>" + quoted + " returns exactly 1 replica, the file gives role '" + role() + "' " +
                               std::to_string(replicas) + ". Call uses<...>" + quoted + ", or declare .uses<...>" +
                               quoted + " in main without a number, so that `check` refuses the file"));
}

/// Returns, in the words of the program, why uses<...> found no reference of that class.
Error RoleContext::wrong_use(std::string_view key, rpc::TypeKey asked, const Error& error) const {
  const std::string call = "uses<" + std::string(asked.name) + ">(\"" + std::string(key) + "\")";
  if (error.code() == Errc::unknown_function) {
    return Error(Errc::wrong_type, name(),
                 call + ": " + std::string(asked.name) +
                     " is not the class of a role of this program; write the class "
                     "that the program declares for '" +
                     std::string(key) + "'");
  }
  if (error.code() == Errc::wrong_type) return Error(Errc::wrong_type, name(), call + ": " + error.text());
  return error;
}

std::shared_ptr<rpc::RRefHandle> RoleContext::self_handle(rpc::TypeKey type) const {
  std::shared_ptr<rpc::RRefHandle> self;
  {
    const base::LockGuard lock(state_->mutex);
    self = state_->self;
  }
  if (!self) throw RpcException(Error(Errc::shut_down, name(), "this role is ending"));
  if (self->type().hash != type.hash) {
    throw RpcException(Error(Errc::wrong_type, name(),
                             "this role is a " + std::string(self->type().name) + ", not a " + std::string(type.name)));
  }
  return self;
}

}  // namespace caftan
