// The only file that includes spdlog, because libtorch ships another version of the fmt library that spdlog uses.
#include "caftan/base/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace caftan {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::string one_line(std::string_view subsystem, std::string_view text) {
  std::string line(subsystem);
  if (!line.empty()) line += ": ";
  for (const char c : text) {
    if (c == '\n') {
      line += "\\n";
    } else if (c != '\r') {
      line += c;
    }
  }
  return line;
}

}  // namespace

struct Log::Sink {
  explicit Sink(const std::string& worker) : logger(worker) {}
  spdlog::logger logger;  // one for each Log, not in spdlog's registry: two workers of one name may live in one process
};

Result<Log> Log::open(const LogOptions& options) {
  try {
    Log log;
    log.level_ = options.level;
    log.sink_ = std::make_shared<Sink>(options.worker);
    spdlog::logger& logger = log.sink_->logger;
    if (options.to_stderr) logger.sinks().push_back(std::make_shared<spdlog::sinks::stderr_sink_mt>());
    if (!options.file.empty()) {
      logger.sinks().push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file.string(), false));
    }
    logger.set_pattern("%Y-%m-%dT%H:%M:%S.%fZ %l %n %v", spdlog::pattern_time_type::utc);
    logger.set_level(spdlog_level(options.level));
    logger.flush_on(spdlog::level::trace);
    return log;
  } catch (const spdlog::spdlog_ex& failure) {
    return Error(Errc::io_error, options.worker, std::string("log: ") + failure.what());
  }
}

Log Log::in(std::string subsystem) const {
  Log log = *this;
  log.subsystem_ = std::move(subsystem);
  return log;
}

void Log::write(LogLevel level, std::string_view text) const {
  if (enabled(level)) sink_->logger.log(spdlog_level(level), one_line(subsystem_, text));
}

}  // namespace caftan
