#include "parameter_server/progress_text.hpp"

#include "caftan/base/settings_io.hpp"

namespace caftan::parameter_server {

double mean_staleness(const std::vector<std::uint64_t>& histogram) {
  double steps = 0;
  double sum = 0;
  for (std::size_t staleness = 0; staleness < histogram.size(); ++staleness) {
    const auto count = static_cast<double>(histogram[staleness]);
    steps += count;
    sum += static_cast<double>(staleness) * count;
  }
  return steps > 0 ? sum / steps : 0;
}

std::string staleness_line(const std::vector<std::uint64_t>& histogram) {
  std::string line;
  for (std::size_t staleness = 0; staleness < histogram.size(); ++staleness) {
    if (histogram[staleness] == 0) continue;
    line += (line.empty() ? "staleness: " : ", ") + std::to_string(staleness) + " in " +
            std::to_string(histogram[staleness]) + (line.empty() ? " steps" : "");
  }
  if (line.empty()) return "staleness: no step was applied";
  return line + ", mean " + format_fixed(mean_staleness(histogram), 2);
}

}  // namespace caftan::parameter_server
