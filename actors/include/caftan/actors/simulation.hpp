/// Simulations whose partitions are workers: `sim::add<Model>(program, "phold")` makes the role types
/// `phold.partition`, which holds a part of the logical processes, and `phold.clock`, which gives out virtual time and
/// drives the run.
///     caftan::Program program("phold");
///     caftan::sim::add<Phold>(program, "phold");
///     return program.main(argc, argv);
/// How a model is written: caftan/sim/model.hpp. Rules: docs/protocols/simulation.md.
#pragma once

#include <algorithm>
#include <any>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "caftan/actors/program.hpp"
#include "caftan/actors/role_context.hpp"
#include "caftan/base/settings.hpp"
#include "caftan/base/settings_io.hpp"
#include "caftan/rpc/future.hpp"
#include "caftan/rpc/request.hpp"
#include "caftan/sim/clock_config.hpp"
#include "caftan/sim/model.hpp"
#include "caftan/sim/record.hpp"
#include "caftan/sim/statistics.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan {

class Worker;

namespace actors {
class PartitionSeat;
}  // namespace actors

namespace sim {

// ---- what the clock and the partitions send each other (docs/protocols/simulation.md, "Messages")

/// Makes the part of a model that belongs to a partition.
struct OpenRequest {
  std::uint64_t simulation = 0;
  std::uint32_t index = 0;
  std::vector<std::string> members{};  ///< names of the workers, by index
  std::uint64_t seed = 0;
  SyncChoice sync = SyncChoice::window;
  std::uint64_t events = 0;
  RecordPlan records{};
  std::string folder{};                   ///< of the run; empty: nothing is written
  std::vector<std::string> checkpoint{};  ///< files to go on from; none: from time 0
  bool logs_events = false;
  Time log_from{};
  Time log_until = kNever;
  Time break_time = kNever;
  std::int64_t break_lp = -1;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& simulation& index& members& seed& sync& events& records.series& records.all& records
        .every& folder& checkpoint& logs_events& log_from& log_until& break_time& break_lp;
  }
};

/// What a partition has made.
struct OpenReply {
  std::uint64_t processes = 0;  ///< of the whole model
  std::uint64_t own = 0;        ///< of this partition
  std::uint64_t groups = 0;     ///< of the whole model
  std::uint64_t digest = 0;
  Time lookahead = kNever;
  Time border{};              ///< from which the run goes on
  std::uint64_t handled = 0;  ///< events that the checkpoint counts in this partition
  std::string config{};       ///< of the partition, as a file has it
  std::vector<std::string> warnings{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& processes& own& groups& digest& lookahead& border& handled& config& warnings;
  }
};

/// Lets a partition advance.
struct AdvanceRequest {
  Time border{};
  bool ends_warmup = false;  ///< forget the statistics there
  bool wants_hash = false;   ///< return a hash of all processes there

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& border& ends_warmup& wants_hash;
  }
};

/// What a partition reports at a border.
struct BorderReply {
  wire::Bytes report{};      ///< a BorderReport
  std::uint64_t hash = 0;    ///< sum over the processes
  std::int64_t busy = 0;     ///< nanoseconds in which it handled events, so far
  std::int64_t waiting = 0;  ///< nanoseconds in which it waited for frames, so far
  std::vector<Record> records{};
  bool has_more = false;               ///< further records are to be fetched
  std::vector<std::string> missing{};  ///< series that no process has recorded

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& report& hash& busy& waiting& records& has_more& missing;
  }
};

/// Records that did not fit into a reply.
struct RecordsPage {
  std::vector<Record> records{};
  bool has_more = false;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& records& has_more;
  }
};

/// What a partition has at the end.
struct ResultsPage {
  std::vector<std::uint64_t> hashes{};  ///< by process
  std::vector<LpStatistic> statistics{};
  std::uint64_t next_hash = 0;  ///< where the next page begins
  std::uint64_t next_statistic = 0;
  bool has_more = false;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& hashes& statistics& next_hash& next_statistic& has_more;
  }
};

/// One partition as peers call it: the methods of the role type `NAME.partition`, whatever the model.
class PartitionCalls {
 public:
  /// Builds the model. It keeps what processes of the model point to.
  using Build = std::function<void(Builder&)>;

  PartitionCalls(Build build, std::string config, std::function<void(const std::string&)> log);
  PartitionCalls(const PartitionCalls&) = delete;
  PartitionCalls& operator=(const PartitionCalls&) = delete;
  virtual ~PartitionCalls();

  /// Makes the partition's processes. Errors: invalid_config (a checkpoint of another model or seed), bad_arguments,
  /// user_error (the model), io_error, malformed_payload (a checkpoint), unknown_worker.
  Result<OpenReply> open(Worker& worker, const CallInfo& info, const OpenRequest& request);
  /// Advances up to the border, and completes there. Errors: what handlers do wrong, peer_down (another partition or
  /// the clock
  ///   was lost).
  Future<BorderReply> advance(const AdvanceRequest& request);
  /// Returns records that an earlier reply had no room for.
  Result<RecordsPage> records();
  /// Writes FOLDER/partition-INDEX. Errors: io_error, user_error (a `serialize` threw).
  Result<void> save(const std::string& folder);
  /// Returns hashes and statistics of the present border, a page at a time.
  Result<ResultsPage> results(std::uint64_t next_hash, std::uint64_t next_statistic);
  /// Forgets the simulation.
  Result<void> close();

 protected:
  /// Returns what must live as long as a job of the partition runs. Called once, from `open`.
  virtual std::weak_ptr<void> keep() { return nothing_; }

 private:
  const Build build_;
  const std::string config_;
  const std::function<void(const std::string&)> log_;
  const std::shared_ptr<void> nothing_;
  std::shared_ptr<actors::PartitionSeat> seat_;
};

/// How a clock calls one partition.
struct PartitionPort {
  std::function<Future<OpenReply>(const OpenRequest&)> open{};
  std::function<Future<BorderReply>(const AdvanceRequest&)> advance{};
  std::function<Future<RecordsPage>()> records{};
  std::function<Future<void>(const std::string& folder)> save{};
  std::function<Future<ResultsPage>(std::uint64_t, std::uint64_t)> results{};
  std::function<Future<void>()> close{};
};

/// The role that gives out virtual time, whatever the model.
class ClockDriver {
 public:
  ClockDriver(RoleContext& context, ClockConfig config);
  ClockDriver(const ClockDriver&) = delete;
  ClockDriver& operator=(const ClockDriver&) = delete;
  virtual ~ClockDriver();

  /// Runs the simulation up to its end. Errors: those of the partitions, peer_down (with the virtual time and the
  /// newest
  ///   checkpoint), invalid_config (times, a checkpoint), io_error, timeout (late in real time), shut_down (asked to
  ///   stop).
  Result<void> run(std::stop_token stop);

 protected:
  /// Returns the partitions in the order of their index. @param members  gets the names of their workers
  virtual std::vector<PartitionPort> partitions(std::vector<std::string>& members) = 0;
  RoleContext& context() noexcept { return context_; }

 private:
  RoleContext& context_;
  const ClockConfig config_;
};

/// Returns what a file that sets the clock and this model would do wrong, for `caftan check`.
/// @param build       of the first partition
/// @param partitions  how many there are
/// @param end         of the run: what the model plans from then on is a warning
std::vector<app::MissingRequirement> model_requirements(const std::function<void(Builder&)>& build,
                                                        std::size_t partitions, Time end = kNever);
/// Returns what is wrong with the times of a clock, for `caftan check`.
std::vector<app::MissingRequirement> clock_requirements(const ClockConfig& config, std::size_t partitions);
/// Returns what prevents a run from going on from the checkpoint that the clock's `resume` names: there is none, it is
/// at or behind the end, or of another seed, config or model, with the first difference. Nothing without `resume`.
/// @param seed    run.seed
/// @param model   the config of the partitions, as a file has it
/// @param build   of the first partition; null: the model cannot be built before the run
std::vector<app::MissingRequirement> resume_requirements(const ClockConfig& config, std::uint64_t seed,
                                                         const std::string& model,
                                                         const std::function<void(Builder&)>& build);

/// The role type `NAME.partition`: holds the processes of one partition, and is passive.
template <class Model>
class PartitionRole final : public PartitionCalls {
 public:
  /// The config of the model, which all partitions have in common.
  using Config = typename Model::Config;

  PartitionRole(RoleContext& context, Config config)
      : PartitionRole(context, std::make_shared<Config>(std::move(config))) {}

  /// Returns what is wrong with the model of this config.
  static std::vector<app::MissingRequirement> requirements(const Config& config) {
    if constexpr (kUsesContext) {
      return {};
    } else {
      return model_requirements([&config](Builder& builder) { Model::build(builder, config); }, 1);
    }
  }

  /// Whether `build` takes the context of the role, so that the model cannot be built without one.
  static constexpr bool kUsesContext = requires(Builder & builder, const Config& config, RoleContext& context) {
    Model::build(builder, config, context);
  };

 protected:
  std::weak_ptr<void> keep() override {
    return rpc::wait_for_local(context_.template self<PartitionRole>().handle(), {}).value();
  }

 private:
  PartitionRole(RoleContext& context, std::shared_ptr<Config> config)
      : PartitionCalls(
            // Processes point into the config: the function keeps it.
            [&, config](Builder& builder) {
              if constexpr (kUsesContext) {
                Model::build(builder, *config, context);
              } else {
                Model::build(builder, *config);
              }
            },
            dump_settings(bind_settings(*config), ""), [&context](const std::string& line) { context.log(line); }),
        context_(context) {}

  RoleContext& context_;
};

/// The role type `NAME.clock`.
template <class Model>
class ClockRole final : public ClockDriver {
 public:
  /// The config of every clock.
  using Config = ClockConfig;
  /// The role that it drives.
  using Partition = PartitionRole<Model>;
  using ClockDriver::ClockDriver;

  /// Returns what is wrong with the times, with the number of partitions, and with the checkpoint to go on from.
  static std::vector<app::MissingRequirement> requirements(const Config& config, const app::RolePlace& place) {
    const auto used = place.uses.find("partitions");
    const std::size_t count = used == place.uses.end() ? 0 : used->second.size();
    std::vector<app::MissingRequirement> missing = clock_requirements(config, count);
    if (count == 0) return missing;
    auto model = std::any_cast<typename Model::Config>(*used->second.front());
    std::function<void(Builder&)> build;
    if constexpr (!Partition::kUsesContext) build = [&model](Builder& builder) { Model::build(builder, model); };
    std::ranges::move(resume_requirements(config, place.root_seed, dump_settings(bind_settings(model), ""), build),
                      std::back_inserter(missing));
    if constexpr (!Partition::kUsesContext) {
      auto more = model_requirements(build, count, time_of(config.end_time).value_or(kNever));
      // What is wrong with the model alone is a finding of the partitions already.
      for (app::MissingRequirement& one : more) {
        const bool is_of_clock =
            one.keys == std::vector<std::string>{"partitions"} || one.keys == std::vector<std::string>{"end_time"};
        if (one.kind == app::MissingRequirement::Kind::doubt && is_of_clock) missing.push_back(std::move(one));
      }
    }
    return missing;
  }

 protected:
  std::vector<PartitionPort> partitions(std::vector<std::string>& members) override {
    std::vector<PartitionPort> ports;
    // A window takes as long as it takes: the loss of a partition ends a call, its time does not.
    const CallOptions endless{.timeout = base::Duration::zero()};
    for (const RRef<Partition>& one : context().template uses<Partition>("partitions")) {
      const auto calls = one.with(endless);
      members.push_back(context().peer(one.handle()->rref().worker).name());
      ports.push_back(
          {.open =
               [calls](const OpenRequest& request) { return calls.template rpc_async<&PartitionCalls::open>(request); },
           .advance =
               [calls](const AdvanceRequest& request) {
                 return calls.template rpc_async<&PartitionCalls::advance>(request);
               },
           .records = [calls] { return calls.template rpc_async<&PartitionCalls::records>(); },
           .save =
               [calls](const std::string& folder) { return calls.template rpc_async<&PartitionCalls::save>(folder); },
           .results =
               [calls](std::uint64_t hash, std::uint64_t statistic) {
                 return calls.template rpc_async<&PartitionCalls::results>(hash, statistic);
               },
           .close = [calls] { return calls.template rpc_async<&PartitionCalls::close>(); }});
    }
    return ports;
  }
};

/// Adds a model to a program, as the role types `NAME.partition` and `NAME.clock`. Returns the first one, so that a
/// model whose `build` takes a RoleContext can say whom it uses.
template <class Model>
RoleBuilder<PartitionRole<Model>> add(Program& program, const std::string& name) {
  using Role = PartitionRole<Model>;
  RoleBuilder<Role> partition = program.role<Role>(name + ".partition");
  partition.doc("Holds a part of the logical processes of the model " + name)
      .own_cores()
      .template method<&PartitionCalls::open>("open")
      .template method<&PartitionCalls::advance>("advance")
      .template method<&PartitionCalls::records>("records")
      .template method<&PartitionCalls::save>("save")
      .template method<&PartitionCalls::results>("results")
      .template method<&PartitionCalls::close>("close");
  program.role<ClockRole<Model>>(name + ".clock")
      .doc("Gives out virtual time to the partitions of the model " + name + ", and drives the run")
      .template uses<Role>("partitions", at_least(1));
  return partition;
}

}  // namespace sim
}  // namespace caftan
