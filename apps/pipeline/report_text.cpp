#include "pipeline/report_text.hpp"

#include "caftan/base/settings_io.hpp"

namespace caftan::pipeline {
namespace {

std::string percent(double share) { return format_fixed(100 * share, 0) + " %"; }
std::string megabytes(std::int64_t bytes) { return format_fixed(static_cast<double>(bytes) / 1e6, 0) + " MB"; }

}  // namespace

std::string batch_line(const Standing& standing) {
  return "batch " + std::to_string(standing.batch) + " of " + std::to_string(standing.batches) + "  loss " +
         format_fixed(standing.loss, 3) + "  " + format_fixed(standing.s_per_batch, 3) + " s/batch, bubble " +
         percent(standing.bubble);
}

std::string trained_line(const Standing& standing, double seconds) {
  return "trained: " + std::to_string(standing.batch) + " batches, loss " + format_fixed(standing.loss, 3) + ", " +
         format_fixed(standing.s_per_batch, 3) + " s/batch, " + format_fixed(seconds, 1) + " s";
}

std::string stage_line(const StageSummary& summary) {
  std::string line = summary.name + " (" + summary.units + "): bubble " + percent(summary.bubble) + ", held at most " +
                     std::to_string(summary.most_held) + (summary.most_held == 1 ? " micro-batch" : " micro-batches");
  if (summary.peak_memory == 0) return line;
  line += ", peak memory " + megabytes(summary.peak_memory);
  if (!summary.is_apart) return line + " of its process, which has several workers";
  return line + " (" + megabytes(summary.peak_memory - summary.memory) + " more than before the first batch)";
}

}  // namespace caftan::pipeline
