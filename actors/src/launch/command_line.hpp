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
  enum class Command { run, check, plan, sweep, plot, help };
  Command command = Command::help;
  std::filesystem::path file{};
  std::vector<std::string> overrides{};  ///< key=value; of sweep also key=1..10 and key=a,b
  std::optional<std::string> host{};     ///< placement "hosts": run the workers of this host
  std::optional<std::string> role{};     ///< placement "hosts": run the workers of this role
  std::optional<int> replica{};          ///< one of them
  int jobs = 1;                          ///< for sweep: how many runs at a time
  std::optional<std::string> out{};      ///< of sweep: its folder
  std::optional<std::string> metric{};   ///< for sweep: the metric that the table shows
  bool slurm = false;                    ///< of plan: a batch script
  bool kubernetes = false;               ///< of plan: manifests
  bool container = false;                ///< of plan: a container file
  std::string image{};                   ///< for the manifests
  std::string topic{};                   ///< of help
  PlotCommand plot{};
};

/// The text to print instead of running a command: usage, the version, an error.
struct CommandLineText {
  int exit_code = 0;
  std::string text{};
};

/// Returns the first word of a command's usage: "new" of "new NAME".
std::string command_name(const std::string& usage);

/// Returns the names of all commands of a program, its own ones last.
/// @param own  as for usage_line
std::vector<std::string> command_names(const std::vector<std::string>& own);

/// Returns "usage: ..." of all commands of a program, a line.
/// @param own  the usage of each command that the program adds: "new NAME"
std::string usage_line(const std::string& name, const std::vector<std::string>& own);

/// @param name  of the program
/// @param own   as for usage_line; the arguments are none of these commands
std::variant<CommandLine, CommandLineText> parse_command_line(const std::string& name,
                                                              const std::vector<std::string>& own, int argc,
                                                              const char* const* argv);

}  // namespace caftan::actors
