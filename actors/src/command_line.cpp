#include "command_line.hpp"

#include <CLI/CLI.hpp>
#include <sstream>

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
      ->check(CLI::NonNegativeNumber);
  host->excludes(role);
  commands.check = app.add_subcommand("check", "find all errors of a file without starting anything");
  add_file(*commands.check, line);
  commands.plan = app.add_subcommand("plan", "show who would run where");
  add_file(*commands.plan, line);
  commands.help = app.add_subcommand("help", "explain a role type; \"file\" explains the application file");
  commands.help->add_option("TOPIC", line.topic, "a role type or \"file\"; without one, all role types are listed");
  return commands;
}

}  // namespace

std::variant<CommandLine, CommandLineText> parse_command_line(const std::string& name, int argc,
                                                              const char* const* argv) {
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
