/// The one front for logs: each line carries time, level, worker name and subsystem. Start with `Log::open`; a `Log` is
/// a cheap handle to be copied and passed on, there is no global one. A default constructed `Log` writes nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "caftan/base/result.hpp"

namespace caftan {

/// How important a line of the log is.
enum class LogLevel : std::uint8_t { debug, info, warning, error };

/// Where the lines of a log go.
struct LogOptions {
  std::string worker{};             ///< name shown in every line
  LogLevel level = LogLevel::info;  ///< lines below are dropped
  bool to_stderr = true;
  std::filesystem::path file{};  ///< appended to; empty = no file
};

/// A handle to a log. Copies write to the same destinations; a default-made one writes nothing.
class Log {
 public:
  Log() = default;
  /// Errors: io_error (the file cannot be opened for appending).
  static Result<Log> open(const LogOptions& options);

  /// Returns a handle to the same destinations whose lines name `subsystem`, for example "transport".
  Log in(std::string subsystem) const;

  /// True if a line of that level would be written; asked first where building the text costs something.
  bool enabled(LogLevel level) const noexcept { return sink_ && level >= level_; }

  /// Writes one line and flushes it, so that it survives a kill. Line breaks in `text` become "\n".
  /// Threads: any. May block on the disk.
  void write(LogLevel level, std::string_view text) const;
  /// Writes a line of level debug.
  void debug(std::string_view text) const { write(LogLevel::debug, text); }
  /// Writes a line of level info.
  void info(std::string_view text) const { write(LogLevel::info, text); }
  /// Writes a line of level warning.
  void warning(std::string_view text) const { write(LogLevel::warning, text); }
  /// Writes a line of level error.
  void error(std::string_view text) const { write(LogLevel::error, text); }

 private:
  struct Sink;
  std::shared_ptr<Sink> sink_;
  LogLevel level_ = LogLevel::info;
  std::string subsystem_;
};

}  // namespace caftan
