/// Times by the name of their metric, and what a table has of them.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace caftan::ps_bench {

/// Milliseconds by the names that PyTorch's benchmark gives its metrics: "group,name".
using Times = std::map<std::string, std::vector<double>>;

inline constexpr const char* kBatchAll = "batch_level_metric,batch_all";
inline constexpr const char* kForward = "forward_metric,forward_pass";
inline constexpr const char* kBackward = "backward_metric,backward";
inline constexpr const char* kDenseCall = "hook_future_metric,rpc_dense";
inline constexpr const char* kSparseCall = "hook_future_metric,rpc_sparse";
inline constexpr const char* kStraggler = "parameter_server_straggler_metric,param_index_straggler";
inline constexpr const char* kServerBatch = "parameter_server_batch_metric,param_index_batch";
inline constexpr const char* kAverage = "method_metric,average computation";
inline constexpr const char* kStep = "method_metric,step computation";  ///< of the rule immediate, which has no average

/// What a table has of one metric.
struct Statistics {
  std::size_t count = 0;
  double min = 0;
  double max = 0;
  double mean = 0;
  std::optional<double> variance{};  ///< of the sample: n - 1 below; a single value has none
  std::optional<double> stdev{};
};

/// Precondition: not empty. Source: min, max and Python's statistics.mean, variance and stdev.
Statistics statistics_of(const std::vector<double>& values);

/// Returns the times of several workers together.
Times join(const std::vector<Times>& all);

}  // namespace caftan::ps_bench
