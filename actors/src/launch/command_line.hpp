/// The command line of a program, parsed. The border to CLI11.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launch/plot_command.hpp"

namespace caftan::actors {

struct CommandLine {
  enum class Command { run, check, plan, plot, help };
  Command command = Command::help;
  std::filesystem::path file{};
  std::vector<std::string> overrides{};  ///< key=value
  std::optional<std::string> host{};     ///< placement "hosts": run the workers of this host
  std::optional<std::string> role{};     ///< placement "hosts": run the workers of this role
  std::optional<int> replica{};          ///< one of them
  std::string topic{};                   ///< of help
  PlotCommand plot{};
};

/// What was to be printed instead of doing anything: usage, the version, an error.
struct CommandLineText {
  int exit_code = 0;
  std::string text{};
};

/// @param name  of the program
std::variant<CommandLine, CommandLineText> parse_command_line(const std::string& name, int argc,
                                                              const char* const* argv);

}  // namespace caftan::actors
