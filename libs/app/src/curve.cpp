#include "caftan/app/internal/curve.hpp"

#include <system_error>
#include <utility>

#include "caftan/base/settings_io.hpp"
#include "curve_line.hpp"
#include "file.hpp"

namespace caftan::app {

CurveWriter::CurveWriter(const std::filesystem::path& run_directory) : path_(run_directory / kCurveFile) {}
CurveWriter::CurveWriter(CurveWriter&&) noexcept = default;
CurveWriter& CurveWriter::operator=(CurveWriter&&) noexcept = default;
CurveWriter::~CurveWriter() = default;

void CurveWriter::add(std::string_view worker, std::string_view metric, std::int64_t step, double value) {
  if (failed_) return;
  waiting_ += curve_line({.step = step, .name = std::string(worker) + "." + std::string(metric), .value = value});
  ++rows_;
  if (waiting_.size() >= kMostWaiting) (void)write();
}

Error CurveWriter::fail(const Error& error) {
  failed_ = error;
  waiting_.clear();
  return error;
}

Result<void> CurveWriter::write() {
  if (failed_) return *failed_;
  if (waiting_.empty()) return {};
  if (!file_) {
    auto made = File::create(path_);
    if (!made) return fail(made.error());
    file_ = std::make_unique<File>(*std::move(made));
    waiting_.insert(0, kCurveHeading);
  }
  if (auto written = file_->write(waiting_); !written) return fail(written.error());
  waiting_.clear();
  return {};
}

Result<void> CurveWriter::finish() {
  if (auto written = write(); !written) return written;
  if (!file_) return {};
  file_.reset();
  return order_curve(path_);
}

CurveReader::CurveReader(std::filesystem::path file, std::unique_ptr<std::ifstream> stream)
    : file_(std::move(file)), stream_(std::move(stream)), csv_(*stream_) {}

Result<CurveReader> CurveReader::open(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    return Error(Errc::io_error, file.string() + ": there is no such file");
  }
  auto stream = std::make_unique<std::ifstream>(file, std::ios::binary);
  if (!*stream) return Error(Errc::io_error, file.string() + ": it cannot be read");
  CurveReader reader(file, std::move(stream));
  const auto heading = reader.csv_.next(reader.fields_);
  if (!heading || reader.fields_ != std::vector<std::string>{"step", "name", "value"}) {
    return reader.wrong("the heading of a curve.csv is step,name,value");
  }
  return reader;
}

Error CurveReader::wrong(const std::string& what) const {
  return {Errc::malformed_payload, file_.string() + ":" + std::to_string(csv_.line()) + ": " + what};
}

Result<std::optional<CurveRow>> CurveReader::next() {
  const auto read = csv_.next(fields_);
  if (!read) return wrong(read.error().text());
  if (!*read) return std::optional<CurveRow>();
  if (fields_.size() != 3) return wrong("a row has 3 fields, here are " + std::to_string(fields_.size()));
  const auto step = integer_of(fields_[0]);
  if (!step) return wrong("the step is a whole number, here it is '" + printable(fields_[0]) + "'");
  const auto value = number_of(fields_[2]);
  if (!value) return wrong("the value is a number, here it is '" + printable(fields_[2]) + "'");
  return std::optional<CurveRow>(CurveRow{.step = *step, .name = std::move(fields_[1]), .value = *value});
}

}  // namespace caftan::app
