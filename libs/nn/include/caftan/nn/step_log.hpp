/// The log of the steps of a shared module: one line for each step that was applied, with what each gradient in it was
/// computed from. A replay of it (replay.hpp) gives the same parameters, bit for bit.
/// Start with `StepLogWriter` and `read_step_log`; the text format is in docs/protocols/consistency.md.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "caftan/base/ids.hpp"
#include "caftan/base/result.hpp"
#include "caftan/nn/consistency.hpp"

namespace caftan::nn {

/// How many steps were applied to the parameters of a shared module. Not torch's `_version` of a tensor.
struct ModelVersion {
  std::uint64_t value = 0;
  auto operator<=>(const ModelVersion&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& value;
  }
};

/// A trainer of a shared module: 0, 1, ... below the number of trainers. Gradients are added in this order.
struct TrainerNumber {
  std::uint32_t value = 0;
  auto operator<=>(const TrainerNumber&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& value;
  }
};

/// The gradient of one context in a step, by what it was computed from.
struct Contribution {
  TrainerNumber trainer;
  ContextId context;
  std::uint64_t batch = 0;  ///< what the trainer called its input
  ModelVersion read;        ///< which parameters its forward and backward passes saw
  bool operator==(const Contribution&) const = default;
};

/// What the schedule of a trainer has set for its step.
struct StepRates {
  double lr = 0;                     ///< finite, >= 0
  std::optional<double> momentum{};  ///< none: that of the step before
  bool operator==(const StepRates&) const = default;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& lr& momentum;
  }
};

/// One applied step.
struct StepRecord {
  ModelVersion step;                        ///< the version that it made
  std::vector<Contribution> contributions;  ///< in the order in which their gradients were added
  std::optional<StepRates> rates{};         ///< that it was made at; none: those of the step before
  bool operator==(const StepRecord&) const = default;
};

/// What a log file holds.
struct StepLog {
  ConsistencyMode mode = ConsistencyMode::versioned;
  ModelVersion first;             ///< of the parameters before the first step
  std::vector<StepRecord> steps;  ///< first + 1, first + 2, ...

  /// Returns the version after the last step.
  ModelVersion last() const noexcept { return steps.empty() ? first : steps.back().step; }
  bool operator==(const StepLog&) const = default;
};

/// Returns the number of contributions for each staleness: element s counts those whose forward read s versions behind
/// the one that their step changed. Precondition: `log` came from parse_step_log or read_step_log.
std::vector<std::uint64_t> staleness_histogram(const StepLog& log);

/// Returns a log's text, of the lowest version that can hold it. Does not check the log; parse_step_log does.
std::string format_step_log(const StepLog& log);

/// Returns the log that a text holds.
/// @param name  what errors call the text; they say `name:line: ...`
/// Errors: malformed_payload (no step log; a line that is cut off, damaged or out of order, or that the log's mode does
///   not allow), protocol_mismatch (of a newer version).
Result<StepLog> parse_step_log(std::string_view text, std::string_view name);

/// Returns the log in a file. Errors: io_error (missing, unreadable), and those of parse_step_log.
Result<StepLog> read_step_log(const std::filesystem::path& path);

/// Writes a log while its module is trained. Each line has left this process when `append` returns; it is not flushed
/// to the disk. Threads: one at a time.
class StepLogWriter {
 public:
  /// Makes a new file with the first line of a log.
  /// @param first  the version of the parameters before the first step
  /// Errors: io_error (it exists already, or cannot be written).
  static Result<StepLogWriter> create(const std::filesystem::path& path, ConsistencyMode mode, ModelVersion first = {});

  /// Writes the line of the next step.
  /// Errors: bad_arguments (not the next step, or one that the mode does not allow; nothing was written), io_error: the
  ///   first one is that of all later steps, too; the code that `give_up` was given.
  Result<void> append(const StepRecord& step);

  /// Refuses all later steps: the last line is of a step that failed for the reason `why`, after the line was written.
  void give_up(const Error& why);

 private:
  StepLogWriter(std::filesystem::path path, ConsistencyMode mode, ModelVersion first);
  Result<void> write(const std::string& line);
  Result<void> raise_format();

  std::filesystem::path path_;
  ConsistencyMode mode_;
  ModelVersion first_;
  ModelVersion last_;
  bool has_rates_ = false;
  std::ofstream file_;
  Error failed_;  // the first failure of a write, or why the last step was not made; ok if there was none
};

}  // namespace caftan::nn
