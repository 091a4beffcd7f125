#include "caftan/remote/internal/actor_host.hpp"

#include <array>
#include <cstring>

#include <caf/logger.hpp>
#include <caf/node_id.hpp>
#include <caf/send.hpp>

#include <caf/scheduler/abstract_coordinator.hpp>

#include "scheduler.hpp"

namespace caftan::remote {

class ActorHost::Config final : public caf::actor_system_config {
 public:
  Config(transport::PollingExecutor& executor, const WorkerLife& self) : executor(executor), self(self) {
    load<SchedulerFactory>();
    load<NodeModule>();
  }

  transport::PollingExecutor& executor;
  const WorkerLife self;

 private:
  static const Config& of(caf::actor_system& system) { return static_cast<const Config&>(system.config()); }

  /// The type that CAF's loader of modules expects: one with a `make` that returns the module.
  struct SchedulerFactory : caf::actor_system::module {
    static caf::actor_system::module* make(caf::actor_system& system, caf::detail::type_list<>) {
      return new Scheduler(system, of(system).executor);
    }
  };

  /// The module in CAF's network slot. It sets the node id before any other code reads it: CAF's own id is equal for
  /// two containers on one host.
  class NodeModule final : public caf::actor_system::module {
   public:
    explicit NodeModule(caf::actor_system& system) : system_(system) {}
    static caf::actor_system::module* make(caf::actor_system& system, caf::detail::type_list<>) {
      return new NodeModule(system);
    }
    void init(caf::actor_system_config&) override {
      const Config& config = of(system_);
      std::array<std::uint8_t, 20> host{};
      std::memcpy(host.data(), &config.self.incarnation.value, sizeof config.self.incarnation.value);
      const_cast<caf::node_id&>(system_.node()) = caf::make_node_id(config.self.id.value, host);
    }
    void start() override {}
    void stop() override {}
    id_t id() const override { return network_manager; }
    void* subtype_ptr() override { return this; }

   private:
    caf::actor_system& system_;
  };
};

namespace {
class Unit final : public caf::execution_unit {
 public:
  explicit Unit(caf::actor_system& system) : caf::execution_unit(&system) {}
  void exec_later(caf::resumable* what) override { system().scheduler().enqueue(what); }
};
}  // namespace

ActorHost::ActorHost(transport::PollingExecutor& executor, const MessageRegistry& messages, const WorkerLife& self)
    : executor_(executor),
      messages_(messages),
      config_(std::make_unique<Config>(executor, self)),
      system_(std::make_unique<caf::actor_system>(*config_)),
      unit_(std::make_unique<Unit>(*system_)) {
  forget_logger();
}

void ActorHost::forget_logger() { caf::logger::set_current_actor_system(nullptr); }

ActorHost::~ActorHost() = default;

bool ActorHost::wait_until_idle(base::TimePoint until) {
  return static_cast<Scheduler&>(system_->scheduler()).wait_until_idle(until);
}

std::size_t ActorHost::busy_actors() const { return static_cast<Scheduler&>(system_->scheduler()).in_flight(); }

namespace {
const caf::atom_value kCategory = caf::atom("caftan");
}

caf::error to_caf(const Error& error) {
  if (error.code() == Errc::ok) return {};
  return caf::error(static_cast<std::uint8_t>(error.code()), kCategory,
                    caf::make_message(error.worker(), error.text()));
}

Error from_caf(const caf::error& error, const caf::actor_system& system) {
  if (!error) return Error();  // CAF 0.17.6 does not return the category of an error that is a normal exit
  if (error.category() == kCategory) {
    const caf::message& context = error.context();
    if (context.match_elements<std::string, std::string>()) {
      return Error(static_cast<Errc>(error.code()), context.get_as<std::string>(0), context.get_as<std::string>(1));
    }
    return Error(static_cast<Errc>(error.code()), std::string());
  }
  return Error(Errc::remote_exception, system.render(error));
}

}  // namespace caftan::remote
