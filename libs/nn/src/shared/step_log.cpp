#include "caftan/nn/step_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <iterator>
#include <span>
#include <system_error>
#include <utility>

#include "caftan/wire/checkpoint_file.hpp"

namespace caftan::nn {
namespace {

constexpr std::string_view kMagic = "caftan-step-log";
constexpr std::uint64_t kFormat = 2;
constexpr std::uint64_t kFormatWithoutRates = 1;
constexpr std::size_t kChecksumSize = 10;  // " #" and 8 hexadecimal digits

std::string hex(std::uint64_t value) {
  std::string digits(16, '0');
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16);
  static_cast<void>(error);
  digits.resize(static_cast<std::size_t>(end - digits.data()));
  return digits;
}

std::string checksum_of(std::string_view text) {
  const std::string digits = hex(wire::crc32c(std::as_bytes(std::span(text.data(), text.size()))));
  return " #" + std::string(8 - digits.size(), '0') + digits;
}

std::string with_checksum(const std::string& text) { return text + checksum_of(text) + "\n"; }

/// Returns the shortest text from which the same number is read.
std::string exact(double value) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  static_cast<void>(error);
  return {text.data(), end};
}

std::string header_line(ConsistencyMode mode, ModelVersion first, bool has_rates) {
  const std::uint64_t format = has_rates ? kFormat : kFormatWithoutRates;
  return with_checksum(std::string(kMagic) + " " + std::to_string(format) + " " + std::string(to_string(mode)) + " " +
                       std::to_string(first.value));
}

std::string step_line(const StepRecord& step) {
  std::string text = std::to_string(step.step.value);
  for (const Contribution& c : step.contributions) {
    text += " " + std::to_string(c.trainer.value) + ":" + std::to_string(c.batch) + "@" + std::to_string(c.read.value) +
            "=" + to_string(c.context) + "." + hex(c.context.incarnation.value);
  }
  if (step.rates) text += " lr=" + exact(step.rates->lr);
  if (step.rates && step.rates->momentum) text += " momentum=" + exact(*step.rates->momentum);
  return with_checksum(text);
}

/// Returns why no module in that mode makes `step` after the version `last`; empty if one does.
std::string why_not(const StepRecord& step, ConsistencyMode mode, ModelVersion first, ModelVersion last) {
  const std::string name = "step " + std::to_string(step.step.value);
  if (step.step.value != last.value + 1) return name + " after version " + std::to_string(last.value);
  if (step.contributions.empty()) return name + " has no contribution";
  if (mode != ConsistencyMode::sync && step.contributions.size() > 1) {
    return name + " has " + std::to_string(step.contributions.size()) + " contributions, in mode '" +
           std::string(to_string(mode)) + "' it has one";
  }
  if (step.rates && !(std::isfinite(step.rates->lr) && step.rates->lr >= 0)) {
    return name + " has the learning rate " + exact(step.rates->lr);
  }
  if (step.rates && !std::isfinite(step.rates->momentum.value_or(0))) {
    return name + " has the momentum " + exact(*step.rates->momentum);
  }
  const Contribution* before = nullptr;
  for (const Contribution& c : step.contributions) {
    if (before && before->trainer >= c.trainer) return name + " has its trainers out of order";
    if (c.read > last || c.read < first) return name + " reads version " + std::to_string(c.read.value);
    if (mode != ConsistencyMode::versioned && c.read != last) {
      return name + " reads version " + std::to_string(c.read.value) + ", in mode '" + std::string(to_string(mode)) +
             "' it reads version " + std::to_string(last.value);
    }
    before = &c;
  }
  return {};
}

/// Reads the text of one line from its begin.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }
  bool is_at(std::string_view text) const { return rest_.starts_with(text); }
  bool literal(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  template <class Number>
  bool number(Number& value, int base = 10) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }
  bool number(double& value) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }
  /// Returns what is before the next space, or all that is left.
  std::string_view word() {
    const std::string_view found = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(found.size());
    return found;
  }

 private:
  std::string_view rest_;
};

bool read_contribution(Cursor& cursor, Contribution& c) {
  return cursor.literal(" ") && cursor.number(c.trainer.value) && cursor.literal(":") && cursor.number(c.batch) &&
         cursor.literal("@") && cursor.number(c.read.value) && cursor.literal("=") &&
         cursor.number(c.context.worker.value) && cursor.literal(".") && cursor.number(c.context.number) &&
         cursor.literal(".") && cursor.number(c.context.incarnation.value, 16);
}

bool read_rates(Cursor& cursor, StepRates& rates) {
  if (!cursor.literal(" lr=") || !cursor.number(rates.lr)) return false;
  return cursor.at_end() ||
         (cursor.literal(" momentum=") && cursor.number(rates.momentum.emplace()) && cursor.at_end());
}

bool read_step(std::string_view text, std::uint64_t format, StepRecord& step) {
  Cursor cursor(text);
  if (!cursor.number(step.step.value)) return false;
  while (!cursor.at_end()) {
    if (format > kFormatWithoutRates && cursor.is_at(" lr=")) return read_rates(cursor, step.rates.emplace());
    if (!read_contribution(cursor, step.contributions.emplace_back())) return false;
  }
  return true;
}

/// Parses a log's text line by line.
class Parser {
 public:
  Parser(std::string_view text, std::string_view name) : rest_(text), name_(name) {}

  Result<StepLog> run() {
    StepLog log;
    if (Result<void> header = read_header(log); !header) return header.error();
    while (!rest_.empty()) {
      const Result<std::string_view> text = next_line();
      if (!text) return text.error();
      StepRecord step;
      if (!read_step(*text, format_, step)) return wrong("this is no step");
      if (const std::string why = why_not(step, log.mode, log.first, log.last()); !why.empty()) return wrong(why);
      log.steps.push_back(std::move(step));
    }
    return log;
  }

 private:
  Result<void> read_header(StepLog& log) {
    // What follows the version number is not read: a later version may have another form, another checksum included.
    Cursor prefix(rest_.substr(0, rest_.find('\n')));
    if (!prefix.literal(kMagic) || !prefix.literal(" ") || !prefix.number(format_)) return not_a_log("no step log");
    if (format_ > kFormat) {
      return Error(Errc::protocol_mismatch, name_ + ":1: a step log of version " + std::to_string(format_) +
                                                ", this build reads version " + std::to_string(kFormat));
    }
    const Result<std::string_view> text = next_line();
    if (!text) return text.error();
    Cursor cursor(*text);
    cursor.literal(kMagic);
    cursor.literal(" ");
    if (!cursor.number(format_) || format_ < kFormatWithoutRates || !cursor.literal(" ")) {
      return not_a_log("no step log");
    }
    const Result<ConsistencyMode> mode = parse_consistency_mode(cursor.word());
    if (!mode) return wrong(mode.error().text());
    log.mode = *mode;
    if (!cursor.literal(" ") || !cursor.number(log.first.value) || !cursor.at_end()) {
      return not_a_log("no step log: its first version is missing");
    }
    return {};
  }

  /// Returns the next line without its checksum.
  Result<std::string_view> next_line() {
    ++line_;
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) return wrong("the line is cut off");
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    if (line.size() < kChecksumSize) return wrong("the line is damaged: it has no checksum");
    const std::string_view text = line.substr(0, line.size() - kChecksumSize);
    if (line.substr(text.size()) != checksum_of(text)) return wrong("the line is damaged: its checksum does not fit");
    return text;
  }

  Error wrong(const std::string& why) const {
    return Error(Errc::malformed_payload, name_ + ":" + std::to_string(line_) + ": " + why);
  }
  Error not_a_log(const std::string& why) const {
    return Error(Errc::malformed_payload, name_ + ":1: the first line is that of " + why);
  }

  std::string_view rest_;
  std::string name_;
  std::size_t line_ = 0;
  std::uint64_t format_ = 0;
};

Error os_error(const std::string& what, const std::filesystem::path& path, int number) {
  return Error(Errc::io_error, what + " " + path.string() + ": " + std::generic_category().message(number));
}

}  // namespace

std::vector<std::uint64_t> staleness_histogram(const StepLog& log) {
  std::vector<std::uint64_t> counts;
  for (const StepRecord& step : log.steps) {
    for (const Contribution& c : step.contributions) {
      const std::size_t staleness = step.step.value - 1 - c.read.value;
      if (counts.size() <= staleness) counts.resize(staleness + 1);
      ++counts[staleness];
    }
  }
  return counts;
}

std::string format_step_log(const StepLog& log) {
  const bool has_rates =
      std::any_of(log.steps.begin(), log.steps.end(), [](const StepRecord& step) { return step.rates.has_value(); });
  std::string text = header_line(log.mode, log.first, has_rates);
  for (const StepRecord& step : log.steps) text += step_line(step);
  return text;
}

Result<StepLog> parse_step_log(std::string_view text, std::string_view name) { return Parser(text, name).run(); }

Result<StepLog> read_step_log(const std::filesystem::path& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return os_error("cannot read", path, errno);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) return os_error("cannot read", path, errno);
  return parse_step_log(text, path.string());
}

StepLogWriter::StepLogWriter(std::filesystem::path path, ConsistencyMode mode, ModelVersion first)
    : path_(std::move(path)), mode_(mode), first_(first), last_(first) {}

Result<StepLogWriter> StepLogWriter::create(const std::filesystem::path& path, ConsistencyMode mode,
                                            ModelVersion first) {
  // Made by open(2): of two that make a log at one path at the same time, one finds that it exists.
  const int made = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (made < 0 && errno == EEXIST) {
    return Error(Errc::io_error, path.string() + " exists already: a log of other steps is not overwritten");
  }
  if (made < 0) return os_error("cannot write", path, errno);
  ::close(made);
  StepLogWriter writer(path, mode, first);
  errno = 0;
  writer.file_.open(path, std::ios::binary);
  if (Result<void> written = writer.write(header_line(mode, first, false)); !written) return written.error();
  return Result<StepLogWriter>(std::move(writer));
}

Result<void> StepLogWriter::append(const StepRecord& step) {
  if (failed_.code() != Errc::ok) return failed_;
  if (const std::string why = why_not(step, mode_, first_, last_); !why.empty()) {
    return Error(Errc::bad_arguments, path_.string() + ": " + why);
  }
  Result<void> written = step.rates && !has_rates_ ? raise_format() : Result<void>();
  if (written) written = write(step_line(step));
  if (!written) {
    failed_ = Error(Errc::io_error, written.error().text() + " at step " + std::to_string(step.step.value) +
                                        "; no step can be logged any more, since a part of a line may be in the file");
    return written;
  }
  last_ = step.step;
  return {};
}

void StepLogWriter::give_up(const Error& why) {
  const std::string step = "step " + std::to_string(last_.value);
  failed_ = Error(why.code(), path_.string() + ": " + step + " failed after its line was written (" + why.text() +
                                  "); no step can be logged any more: share the module anew, with another log");
}

/// Puts the first line of a log with rates, which is as long, in the place of that without.
Result<void> StepLogWriter::raise_format() {
  file_.seekp(0);
  if (Result<void> written = write(header_line(mode_, first_, true)); !written) return written;
  file_.seekp(0, std::ios::end);
  has_rates_ = true;
  return {};
}

Result<void> StepLogWriter::write(const std::string& line) {
  if (!file_.is_open()) return os_error("cannot write", path_, errno);
  errno = 0;
  if (!(file_ << line << std::flush)) return os_error("cannot write", path_, errno);
  return {};
}

}  // namespace caftan::nn
