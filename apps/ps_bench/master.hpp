/// The role type "ps_bench.master": makes the samples, lets the trainers train, first to warm up and then measured, and
/// reports what trainers and servers have measured.
#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

#include "caftan/app/role_type.hpp"
#include "caftan/base/clock.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rpc/rref.hpp"
#include "ps_bench/config.hpp"
#include "ps_bench/messages.hpp"
#include "ps_bench/report.hpp"

namespace caftan {
class RoleContext;
}

namespace caftan::ps_bench {

class Server;
class Trainer;

class Master {
 public:
  using Config = MasterConfig;

  /// As find_missing.
  static std::vector<app::MissingRequirement> requirements(const Config& config, const app::RolePlace& place);

  Master(RoleContext& context, Config config);

  /// Runs the benchmark and writes its reports.
  /// Errors: cancelled (`stop` was requested), io_error, those of calls; user_error (with a rule that averages,
  ///   trainers of one server ended with different models). The loss of any worker is an error: the benchmark would
  ///   measure something else without that worker.
  Result<void> run(std::stop_token stop);

 private:
  Result<void> open();
  Result<void> open_servers();
  Result<std::vector<TrainerReport>> train(std::int64_t epochs, const std::stop_token& stop);
  Result<void> check_equal(const std::vector<TrainerReport>& reports) const;
  Result<Report> collect(const std::vector<TrainerReport>& reports);
  Result<void> show(const Report& report, const std::vector<TrainerReport>& reports);
  Plan plan() const;

  RoleContext& context_;
  Config config_;
  std::vector<RRef<Server>> servers_;
  std::vector<RRef<Trainer>> trainers_;
  double seconds_ = 0;  ///< of the last `train`
  base::SteadyClock clock_{};
};

}  // namespace caftan::ps_bench
