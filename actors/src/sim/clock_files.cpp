#include "sim/clock_files.hpp"

#include <utility>

#include "caftan/app/internal/run_directory.hpp"

namespace caftan::actors {

GrowingTable::GrowingTable(const std::filesystem::path& folder, const std::string& name, std::string head)
    : file_(folder.empty() ? std::filesystem::path() : folder / name), head_(std::move(head)) {}

Result<void> GrowingTable::add(const std::string& lines) {
  if (file_.empty() || lines.empty()) return {};
  if (!stream_.is_open()) {
    stream_.open(file_, std::ios::binary | std::ios::trunc);
    stream_ << head_;
  }
  if (stream_ << lines << std::flush) return {};
  return Error(Errc::io_error, file_.string() + ": it cannot be written");
}

ClockFiles::ClockFiles(const std::filesystem::path& folder)
    : folder_(folder),
      series_(folder, "series.csv", "time,lp,name,value\n"),
      borders_(folder, "borders.csv", "time,hash\n"),
      lateness_(folder, "lateness.csv", "time,lateness\n") {}

Result<void> ClockFiles::add_records(std::vector<sim::Record> records) {
  sim::sort_records(records);
  return series_.add(sim::series_csv(records, false));
}

std::string hash_text(std::uint64_t hash) {
  std::string text(16, '0');
  for (std::size_t i = 0; i < text.size(); ++i) text[text.size() - 1 - i] = "0123456789abcdef"[hash >> 4 * i & 15];
  return text;
}

Result<void> ClockFiles::add_hash(sim::Time border, std::uint64_t hash) {
  return borders_.add(to_string(border) + "," + hash_text(hash) + "\n");
}

Result<void> ClockFiles::add_lateness(sim::Time border, sim::Time lateness) {
  return lateness_.add(to_string(border) + "," + to_string(lateness) + "\n");
}

Result<void> ClockFiles::write_scalars(std::span<const sim::MergedStatistic> merged) const {
  if (folder_.empty() || merged.empty()) return {};
  return app::write_whole_file(folder_ / "scalars.csv", sim::scalars_csv(merged));
}

}  // namespace caftan::actors
