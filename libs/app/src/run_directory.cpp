#include "caftan/app/internal/run_directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <system_error>

#include "file.hpp"

namespace caftan::app {
namespace {

std::string date_text(std::chrono::year_month_day date) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%04d%02u%02u", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  return text.data();
}

/// Replaces DIR/latest in one step, so that it always points to a run.
Result<void> point_latest(const std::filesystem::path& dir, const std::string& run) {
  const std::filesystem::path fresh = dir / ("." + run + ".latest");
  std::error_code error;
  std::filesystem::create_symlink(run, fresh, error);
  if (error) return Error(Errc::io_error, fresh.string() + ": " + error.message());
  std::filesystem::rename(fresh, dir / "latest", error);
  if (!error) return {};
  std::error_code ignored;
  std::filesystem::remove(fresh, ignored);
  return Error(Errc::io_error, (dir / "latest").string() + ": " + error.message());
}

/// Checked before anything is made: a `latest` that is no link was made by a user, and is not replaced.
Result<void> check_latest(const std::filesystem::path& latest) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::symlink_status(latest, error);
  if (!std::filesystem::exists(status) || std::filesystem::is_symlink(status)) return {};
  const char* const is = std::filesystem::is_directory(status) ? "a folder" : "a file";
  return Error(Errc::io_error, latest.string() + ": it is " + is +
                                   ", but has to be a link to the last run; remove it or give it another name");
}

/// Returns why a folder could not be made: "File exists" alone would not say that a link leads nowhere.
std::string folder_failure(const std::filesystem::path& dir, const std::error_code& reason) {
  for (std::filesystem::path part = dir; part.has_relative_path(); part = part.parent_path()) {
    std::error_code error;
    if (!std::filesystem::is_symlink(part, error) || std::filesystem::exists(part, error)) continue;
    return part.string() + ": it is a link to " + std::filesystem::read_symlink(part, error).string() +
           ", which does not exist; make that folder or remove the link";
  }
  return dir.string() + ": " + reason.message();
}

Result<void> fill(const RunDirectory& run, std::string_view resolved) {
  const std::filesystem::path& path = run.path();
  if (::mkdir((path / "log").c_str(), 0777) != 0) {
    return Error(Errc::io_error, (path / "log").string() + ": " + std::strerror(errno));
  }
  if (auto written = write_whole_file(run.resolved_file(), resolved); !written) return written;
  return point_latest(path.parent_path(), path.filename().string());
}

/// Makes the first free DIR/NAME-YYYYMMDD-N. Precondition: `dir` exists.
Result<std::filesystem::path> make_in(const std::filesystem::path& dir, std::string_view name,
                                      std::chrono::year_month_day date) {
  const std::string stem = std::string(name) + "-" + date_text(date) + "-";
  for (int number = 1;; ++number) {
    std::filesystem::path path = dir / (stem + std::to_string(number));
    // mkdir is the lock: of two starts at once one gets EEXIST.
    if (::mkdir(path.c_str(), 0777) == 0) return path;
    if (errno != EEXIST) return Error(Errc::io_error, path.string() + ": " + std::strerror(errno));
  }
}

}  // namespace

std::chrono::year_month_day today() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return {std::chrono::year(local.tm_year + 1900), std::chrono::month(static_cast<unsigned>(local.tm_mon + 1)),
          std::chrono::day(static_cast<unsigned>(local.tm_mday))};
}

Result<void> write_whole_file(const std::filesystem::path& file, std::string_view text) {
  const std::filesystem::path fresh = file.string() + "." + std::to_string(::getpid()) + ".new";
  Result<File> opened = File::create(fresh);
  if (!opened) return opened.error();
  Result<void> done = opened->write(text);
  if (done) done = opened->sync();
  if (done && ::rename(fresh.c_str(), file.c_str()) != 0) {
    done = Error(Errc::io_error, file.string() + ": " + std::strerror(errno));
  }
  if (!done) ::unlink(fresh.c_str());
  return done;
}

Result<RunDirectory> RunDirectory::create(const std::filesystem::path& dir, std::string_view name,
                                          std::chrono::year_month_day date, std::string_view resolved) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) return Error(Errc::io_error, folder_failure(dir, error));
  if (auto checked = check_latest(dir / "latest"); !checked) return checked.error();
  const auto path = make_in(dir, name, date);
  if (!path) return path.error();
  RunDirectory made(*path);
  if (auto filled = fill(made, resolved); !filled) {
    std::filesystem::remove_all(*path, error);  // nothing is left of a run that never began
    return filled.error();
  }
  return made;
}

Result<std::filesystem::path> make_numbered_folder(const std::filesystem::path& dir, std::string_view name,
                                                   std::chrono::year_month_day date) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) return Error(Errc::io_error, folder_failure(dir, error));
  return make_in(dir, name, date);
}

Result<void> RunDirectory::check(const std::filesystem::path& dir) {
  for (std::filesystem::path part = dir;; part = part.parent_path()) {
    if (part.empty()) part = ".";
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(part, error);
    std::error_code ignored;
    const bool is_missing = status.type() == std::filesystem::file_type::not_found;
    if (is_missing && part != "." && !std::filesystem::is_symlink(part, ignored)) continue;
    if (!std::filesystem::exists(status)) return Error(Errc::io_error, folder_failure(dir, error));
    if (!std::filesystem::is_directory(status)) {
      return Error(Errc::io_error, folder_failure(dir, std::make_error_code(std::errc::not_a_directory)));
    }
    // The first folder of the path that exists has to be writable, because the missing ones are made in it.
    if (::faccessat(AT_FDCWD, part.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
      return Error(Errc::io_error, part.string() + ": " + std::strerror(errno));
    }
    return check_latest(dir / "latest");
  }
}

Result<RunDirectory> RunDirectory::open(std::filesystem::path path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return RunDirectory(std::move(path));
  return Error(Errc::io_error, path.string() + ": " + (error ? error.message() : "is no folder"));
}

std::filesystem::path RunDirectory::log_file(std::string_view worker) const {
  return path_ / "log" / (std::string(worker) + ".log");
}

}  // namespace caftan::app
