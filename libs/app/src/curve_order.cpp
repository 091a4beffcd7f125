#include <algorithm>
#include <filesystem>
#include <queue>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "caftan/app/internal/curve.hpp"
#include "curve_line.hpp"
#include "file.hpp"

namespace caftan::app {
namespace {

constexpr std::size_t kBlock = 64 * 1024;  ///< bytes of one write

/// Writes a curve.csv from rows that are given in their final order.
class OrderedFile {
 public:
  static Result<OrderedFile> create(const std::filesystem::path& path) {
    auto file = File::create(path);
    if (!file) return file.error();
    return OrderedFile(*std::move(file));
  }
  Result<void> add(const CurveRow& row) {
    text_ += curve_line(row);
    return text_.size() < kBlock ? Result<void>() : flush();
  }
  Result<void> end() {
    if (auto written = flush(); !written) return written;
    return file_.sync();
  }

 private:
  explicit OrderedFile(File file) : file_(std::move(file)), text_(kCurveHeading) {}
  Result<void> flush() {
    auto written = file_.write(text_);
    text_.clear();
    return written;
  }

  File file_;
  std::string text_;
};

/// The temporary files of a sort, beside the file that is sorted; the destructor removes them.
class Parts {
 public:
  explicit Parts(std::filesystem::path folder) : folder_(std::move(folder)) {}
  ~Parts() {
    std::error_code ignored;
    for (const std::filesystem::path& path : paths_) std::filesystem::remove(path, ignored);
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  /// Returns the path of a new temporary file.
  const std::filesystem::path& make() {
    return paths_.emplace_back(folder_ / (".curve-" + std::to_string(paths_.size()) + ".part"));
  }
  const std::vector<std::filesystem::path>& paths() const noexcept { return paths_; }

 private:
  std::filesystem::path folder_;
  std::vector<std::filesystem::path> paths_;
};

/// Replaces `rows` by at most `most` rows of the reader.
Result<void> take(CurveReader& reader, std::size_t most, std::vector<CurveRow>& rows) {
  rows.clear();
  while (rows.size() < most) {
    auto row = reader.next();
    if (!row) return row.error();
    if (!*row) break;
    rows.push_back(**std::move(row));
  }
  return {};
}

Result<void> write_part(std::vector<CurveRow>& rows, const std::filesystem::path& path) {
  std::ranges::stable_sort(
      rows, [](const CurveRow& a, const CurveRow& b) { return std::tie(a.step, a.name) < std::tie(b.step, b.name); });
  auto file = OrderedFile::create(path);
  if (!file) return file.error();
  for (const CurveRow& row : rows) {
    if (auto added = file->add(row); !added) return added;
  }
  return file->end();
}

struct Head {
  CurveRow row{};
  std::size_t part = 0;
};
struct IsLater {
  bool operator()(const Head& a, const Head& b) const {
    return std::tie(a.row.step, a.row.name, a.part) > std::tie(b.row.step, b.row.name, b.part);
  }
};

Result<void> merge(const std::vector<std::filesystem::path>& parts, const std::filesystem::path& to) {
  std::vector<CurveReader> readers;
  std::priority_queue<Head, std::vector<Head>, IsLater> heads;
  const auto advance = [&](std::size_t part) -> Result<void> {
    auto row = readers[part].next();
    if (!row) return row.error();
    if (*row) heads.push({**std::move(row), part});
    return {};
  };
  for (const std::filesystem::path& path : parts) {
    auto reader = CurveReader::open(path);
    if (!reader) return reader.error();
    readers.push_back(*std::move(reader));
    if (auto advanced = advance(readers.size() - 1); !advanced) return advanced;
  }
  auto file = OrderedFile::create(to);
  if (!file) return file.error();
  while (!heads.empty()) {
    const Head head = heads.top();
    heads.pop();
    if (auto added = file->add(head.row); !added) return added;
    if (auto advanced = advance(head.part); !advanced) return advanced;
  }
  return file->end();
}

}  // namespace

Result<void> order_curve(const std::filesystem::path& file, std::size_t rows_at_once) {
  Parts parts(file.parent_path());
  {
    auto reader = CurveReader::open(file);
    if (!reader) return reader.error();
    std::vector<CurveRow> rows;
    do {
      if (auto taken = take(*reader, rows_at_once, rows); !taken) return taken;
      if (rows.empty() && !parts.paths().empty()) break;
      if (auto written = write_part(rows, parts.make()); !written) return written;
    } while (rows.size() == rows_at_once);
  }
  if (parts.paths().size() > 1) {
    const std::vector<std::filesystem::path> unmerged = parts.paths();
    if (auto merged = merge(unmerged, parts.make()); !merged) return merged;
  }
  std::error_code error;
  std::filesystem::rename(parts.paths().back(), file, error);
  if (error) return Error(Errc::io_error, file.string() + ": " + error.message());
  return {};
}

}  // namespace caftan::app
