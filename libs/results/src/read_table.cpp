#include "read_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <vector>

#include "caftan/app/internal/csv.hpp"
#include "caftan/app/internal/curve.hpp"
#include "caftan/base/settings_io.hpp"

namespace caftan::results {
namespace {

/// Returns the column of a heading; the number of columns if there is none of that name.
std::size_t column_of(const std::vector<std::string>& heading, const char* name) {
  return static_cast<std::size_t>(std::ranges::find(heading, name) - heading.begin());
}

}  // namespace

Result<void> read_steps(const std::filesystem::path& file, const TakeValue& take) {
  auto reader = app::CurveReader::open(file);
  if (!reader) return reader.error();
  for (;;) {
    const auto row = reader->next();
    if (!row) return row.error();
    if (!*row) return {};
    if (auto taken = take((*row)->name, static_cast<double>((*row)->step), (*row)->value); !taken) return taken;
  }
}

Result<void> read_times(const std::filesystem::path& file, const TakeValue& take) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return Error(Errc::io_error, file.string() + ": it cannot be read");
  app::CsvReader reader(stream);
  const auto wrong = [&](const std::string& what) {
    return Error(Errc::malformed_payload, file.string() + ":" + std::to_string(reader.line()) + ": " + what);
  };
  std::vector<std::string> fields;
  const auto heading = reader.next(fields);
  const std::size_t columns = fields.size();
  const std::size_t time = column_of(fields, "time_s");
  const std::size_t worker = column_of(fields, "worker");
  const std::size_t metric = column_of(fields, "metric");
  const std::size_t mean = column_of(fields, "mean");
  if (!heading || std::max({time, worker, metric, mean}) >= columns) {
    return wrong("the heading of a metrics.csv has time_s, worker, metric and mean");
  }
  for (;;) {
    const auto read = reader.next(fields);
    if (!read) return wrong(read.error().text());
    if (!*read) return {};
    if (fields.size() != columns) {
      return wrong("a row has " + std::to_string(columns) + " fields, here are " + std::to_string(fields.size()));
    }
    const auto x = app::number_of(fields[time]);
    const auto y = app::number_of(fields[mean]);
    if (!x || !std::isfinite(*x)) return wrong("time_s is a number, here it is '" + printable(fields[time]) + "'");
    if (!y) return wrong("mean is a number, here it is '" + printable(fields[mean]) + "'");
    if (auto taken = take(fields[worker] + "." + fields[metric], *x, *y); !taken) return taken;
  }
}

}  // namespace caftan::results
