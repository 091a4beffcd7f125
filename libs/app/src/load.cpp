#include "caftan/app/internal/load.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "application_reader.hpp"

namespace caftan::app {
namespace {

/// Reads at most one byte more than the limit, so that a file that grows or has no size is bounded too.
Result<std::string> read_file(const std::filesystem::path& file) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(file, error);
  if (std::filesystem::is_directory(status)) return Error(Errc::invalid_config, "is a directory, not a file");
  // Opening a pipe would block until another process opens its other end.
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return Error(Errc::invalid_config, "is no regular file");
  }
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return Error(Errc::invalid_config, std::string("cannot be read: ") + std::strerror(errno));
  std::string text(kMaxFileBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) return Error(Errc::invalid_config, std::string("cannot be read: ") + std::strerror(errno));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > kMaxFileBytes) return Error(Errc::invalid_config, "is larger than 1 MiB");
  return text;
}

/// Returns the name of a run for a file name: "cartpole.test.toml" gives "cartpole-test". The name never begins with a
/// dash: commands would take the run's folder for an option.
std::string run_name(const std::filesystem::path& file) {
  std::string name;
  for (const char c : file.stem().string()) {
    if (c >= 'A' && c <= 'Z') {
      name += static_cast<char>(c - 'A' + 'a');
    } else {
      name += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-';
    }
  }
  name.erase(0, name.find_first_not_of('-'));
  name.resize(std::min<std::size_t>(name.size(), 64));
  return name.empty() ? "run" : name;
}

}  // namespace

LoadedApplication parse_application(std::string_view text, const std::filesystem::path& file,
                                    std::span<const std::string> overrides, const RoleTypes& types,
                                    const LoadOptions& options) {
  LoadedApplication loaded{.application = {}, .diagnostics = Diagnostics(file.string())};
  Diagnostics& diagnostics = loaded.diagnostics;
  diagnostics.set_source(std::string(text));
  diagnostics.set_overrides({overrides.begin(), overrides.end()});
  std::error_code ignored;  // without a current directory the name stays relative
  loaded.application.file = std::filesystem::absolute(file, ignored).lexically_normal();
  if (loaded.application.file.empty()) loaded.application.file = file;
  loaded.application.run.name = run_name(file);

  SettingsNode root = parse_settings(text, diagnostics);
  if (!diagnostics.ok()) return loaded;
  for (std::size_t i = 0; i < overrides.size(); ++i) {
    apply_override(root, overrides[i], static_cast<int>(i), diagnostics);
  }
  const Reading reading{root, types, options, loaded.application, diagnostics};
  if (!read_version(reading)) return loaded;
  read_tables(reading);
  read_roles(reading);
  check_uses(reading);
  read_permissions(reading);
  check_requirements(reading);
  check_scripts(reading);
  read_hosts(reading);
  check_placement(reading);
  check_cores(reading);
  check_torch_threads(reading);
  check_on_loss(reading);
  return loaded;
}

LoadedApplication load_application(const std::filesystem::path& file, std::span<const std::string> overrides,
                                   const RoleTypes& types, const LoadOptions& options) {
  const Result<std::string> text = read_file(file);
  if (text) return parse_application(*text, file, overrides, types, options);
  LoadedApplication loaded{.application = {}, .diagnostics = Diagnostics(file.string())};
  loaded.diagnostics.error({}, text.error().text());
  return loaded;
}

}  // namespace caftan::app
