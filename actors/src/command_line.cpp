#include "command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <sstream>

#include "caftan/base/settings_diagnostics.hpp"
#include "caftan/base/settings_io.hpp"

namespace caftan::actors {
namespace {

constexpr int kBadCommandLine = 2;

struct Subcommands {
  CLI::App* run = nullptr;
  CLI::App* check = nullptr;
  CLI::App* plan = nullptr;
  CLI::App* help = nullptr;
};

void add_file(CLI::App& command, CommandLine& line) {
  command.add_option("FILE", line.file, "the application file")->required();
  command.add_option("KEY=VALUE", line.overrides, "settings that replace those of the file");
}

Subcommands declare(CLI::App& app, CommandLine& line) {
  Subcommands commands;
  app.require_subcommand(1);
  app.set_version_flag("--version", "caftan " CAFTAN_VERSION);
  commands.run = app.add_subcommand("run", "run the application that a file describes");
  add_file(*commands.run, line);
  CLI::Option* const host =
      commands.run->add_option("--host", line.host, "placement \"hosts\": run the workers of this host");
  CLI::Option* const role =
      commands.run->add_option("--role", line.role, "placement \"hosts\": run the workers of this role");
  commands.run->add_option("--replica", line.replica, "only this one of the role")
      ->needs(role)
      ->check([](const std::string& given) {
        return given.starts_with('-') ? "replicas are numbered from 0, is " + given : std::string();
      });
  host->excludes(role);
  commands.check = app.add_subcommand("check", "find all errors of a file without starting anything");
  add_file(*commands.check, line);
  commands.plan = app.add_subcommand("plan", "show who would run where");
  add_file(*commands.plan, line);
  commands.help = app.add_subcommand("help", "explain a role type; \"file\" explains the application file");
  commands.help->add_option("TOPIC", line.topic, "a role type or \"file\"; without one, all role types are listed");
  return commands;
}

/// What stands where the command belongs and is none: CLI11 would not name it.
std::optional<std::string> find_wrong_command(const std::string& name, int argc, const char* const* argv) {
  static const std::vector<std::string> kKnown{"run", "check", "plan", "help", "--help", "-h", "--version"};
  const std::string first = argc > 1 ? printable(argv[1]) : std::string();
  const std::string usage = "usage: " + name + " run|check|plan FILE [KEY=VALUE ...], " + name +
                            " help [TYPE | file], " + name + " --version\n";
  if (argc <= 1) return "error: the command is missing\n" + usage;
  if (std::ranges::find(kKnown, first) == kKnown.end()) {
    return "error: no command '" + first + "'" + did_you_mean(first, kKnown) + "\n" + usage;
  }
  if (first == "--version" && argc > 2) {
    return "error: nothing may follow --version, there is '" + printable(argv[2]) + "'\n" + usage;
  }
  return std::nullopt;
}

}  // namespace

std::variant<CommandLine, CommandLineText> parse_command_line(const std::string& name, int argc,
                                                              const char* const* argv) {
  if (auto wrong = find_wrong_command(name, argc, argv)) return CommandLineText{kBadCommandLine, *std::move(wrong)};
  CLI::App app("Runs actor applications that a file describes.", name);
  CommandLine line;
  const Subcommands commands = declare(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream err;
    const int code = app.exit(error, out, err);
    return CommandLineText{code == 0 ? 0 : kBadCommandLine, code == 0 ? out.str() : err.str()};
  }
  if (commands.run->parsed()) line.command = CommandLine::Command::run;
  if (commands.check->parsed()) line.command = CommandLine::Command::check;
  if (commands.plan->parsed()) line.command = CommandLine::Command::plan;
  return line;
}

}  // namespace caftan::actors
