#include "launch/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <sstream>

#include "caftan/app/internal/application.hpp"
#include "caftan/base/settings_diagnostics.hpp"
#include "caftan/base/settings_io.hpp"

namespace caftan::actors {
namespace {

constexpr int kBadCommandLine = 2;

struct Subcommands {
  CLI::App* run = nullptr;
  CLI::App* check = nullptr;
  CLI::App* plan = nullptr;
  CLI::App* sweep = nullptr;
  CLI::App* plot = nullptr;
  CLI::App* help = nullptr;
};

void add_file(CLI::App& command, CommandLine& line) {
  command.add_option("FILE", line.file, "the application file")->required();
  command.add_option("KEY=VALUE", line.overrides, "settings that replace those of the file");
}

CLI::App* add_sweep(CLI::App& app, CommandLine& line) {
  CLI::App* const sweep = app.add_subcommand("sweep", "run a file once for each combination of values, and compare");
  sweep->add_option("FILE", line.file, "the application file")->required();
  sweep
      ->add_option("KEY=VALUES", line.overrides,
                   "key=1..10 (integers), key=a,b,c or key=value; a comma in quotes or brackets is part of a value")
      ->required();
  sweep->add_option("--jobs", line.jobs, "runs at a time")->check(CLI::Range(1, 256));
  sweep->add_option("--out", line.out,
                    "the sweep's folder; one that was begun goes on. Default: a new one in output.dir");
  sweep->add_option("--metric", line.metric, "shown in the table, METRIC or WORKER.METRIC. Default: all");
  return sweep;
}

CLI::App* add_plot(CLI::App& app, PlotCommand& plot) {
  CLI::App* const command = app.add_subcommand("plot", "draw the curves of runs, a chart for each metric");
  command
      ->add_option("RUN", plot.runs, "folders of runs or of sweeps; runs that differ in their seed alone become a band")
      ->required();
  command->add_option("--metric", plot.metric, "only this one: METRIC, or WORKER.METRIC");
  command->add_option("--out", plot.out, "the picture, an SVG file")->capture_default_str();
  command->add_option("--smooth", plot.smooth, "0 to below 1: smoothing as in TensorBoard");
  command->add_flag("--log", plot.is_log, "a logarithmic axis for the values");
  command->add_option("--x", plot.axis, "step, or time in seconds")->capture_default_str();
  return command;
}

CLI::App* add_plan(CLI::App& app, CommandLine& line) {
  CLI::App* const plan =
      app.add_subcommand("plan", "show who would run where, or print what a cluster needs to run it");
  add_file(*plan, line);
  CLI::Option* const slurm = plan->add_flag("--slurm", line.slurm, "print a batch script for sbatch");
  CLI::Option* const kubernetes =
      plan->add_flag("--kubernetes", line.kubernetes, "print manifests for kubectl apply, with a secret of their own");
  CLI::Option* const container = plan->add_flag("--container", line.container, "print a container file for the image");
  plan->add_option("--image", line.image, "the image of the pods; default: the run's name")->needs(kubernetes);
  slurm->excludes(kubernetes)->excludes(container);
  kubernetes->excludes(container);
  return plan;
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
  commands.plan = add_plan(app, line);
  commands.sweep = add_sweep(app, line);
  commands.plot = add_plot(app, line.plot);
  commands.help = app.add_subcommand("help", "explain a role type, a command, or with \"file\" the application file");
  commands.help->add_option("TOPIC", line.topic,
                            "a role type, \"file\", or a command, which COMMAND --help explains too; without one, all "
                            "role types are listed");
  return commands;
}

/// Returns the error that the command is missing or unknown, or that words follow --version, none of which CLI11 would
/// name; nothing otherwise.
std::optional<std::string> find_wrong_command(const std::string& name, const std::vector<std::string>& own, int argc,
                                              const char* const* argv) {
  std::vector<std::string> known = command_names(own);
  for (const char* const option : {"--help", "-h", "--version"}) known.emplace_back(option);
  const std::string first = argc > 1 ? printable(argv[1]) : std::string();
  const std::string usage = usage_line(name, own);
  if (argc <= 1) return "error: the command is missing\n" + usage;
  if (std::ranges::find(known, first) == known.end()) {
    return "error: no command '" + first + "'" + did_you_mean(first, known) + "\n" + usage;
  }
  if (first == "--version" && argc > 2) {
    return "error: nothing may follow --version, there is '" + printable(argv[2]) + "'\n" + usage;
  }
  return std::nullopt;
}

template <class Settings>
bool has_key(std::string_view name) {
  Settings settings;
  const auto fields = bind_settings(settings);
  return std::ranges::find(fields, name, &SettingField::name) != fields.end();
}

/// "; write run.seed=3" for "--seed 3" or "--seed=3" among the arguments; empty if no option is the name of a setting.
std::string setting_hint(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    std::string_view option = argv[i];
    if (!option.starts_with("--")) continue;
    option.remove_prefix(2);
    const std::size_t equals = option.find('=');
    std::string name(option.substr(0, equals));
    std::ranges::replace(name, '-', '_');
    const char* const table = has_key<app::RunSettings>(name)       ? "run"
                              : has_key<app::OutputSettings>(name)  ? "output"
                              : has_key<app::ClusterSettings>(name) ? "cluster"
                              : has_key<app::LimitsSettings>(name)  ? "limits"
                                                                    : nullptr;
    if (!table) continue;
    std::string value(equals == std::string_view::npos ? "" : option.substr(equals + 1));
    if (equals == std::string_view::npos) value = i + 1 < argc && argv[i + 1][0] != '-' ? argv[i + 1] : "...";
    return std::string("settings stand as KEY=VALUE behind FILE: write ") + table + "." + name + "=" +
           printable(value) + "\n";
  }
  return {};
}

}  // namespace

std::string command_name(const std::string& usage) { return usage.substr(0, usage.find(' ')); }

std::vector<std::string> command_names(const std::vector<std::string>& own) {
  std::vector<std::string> names{"run", "check", "plan", "sweep", "plot", "help"};
  for (const std::string& usage : own) names.push_back(command_name(usage));
  return names;
}

std::string usage_line(const std::string& name, const std::vector<std::string>& own) {
  std::string usage = "usage: " + name + " run|check|plan FILE [KEY=VALUE ...], " + name +
                      " sweep FILE KEY=VALUES ..., " + name + " plot RUN ..., ";
  for (const std::string& command : own) usage += name + " " + command + ", ";
  return usage + name + " help [TYPE | file | COMMAND], " + name + " --version\n";
}

std::variant<CommandLine, CommandLineText> parse_command_line(const std::string& name,
                                                              const std::vector<std::string>& own, int argc,
                                                              const char* const* argv) {
  if (auto wrong = find_wrong_command(name, own, argc, argv))
    return CommandLineText{kBadCommandLine, *std::move(wrong)};
  CLI::App app("Runs actor applications that a file describes.", name);
  CommandLine line;
  const Subcommands commands = declare(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream err;
    const int code = app.exit(error, out, err);
    if (code == 0) return CommandLineText{0, out.str()};
    return CommandLineText{kBadCommandLine, err.str() + setting_hint(argc, argv)};
  }
  if (commands.run->parsed()) line.command = CommandLine::Command::run;
  if (commands.check->parsed()) line.command = CommandLine::Command::check;
  if (commands.plot->parsed()) line.command = CommandLine::Command::plot;
  if (commands.plan->parsed()) line.command = CommandLine::Command::plan;
  if (commands.sweep->parsed()) line.command = CommandLine::Command::sweep;
  return line;
}

}  // namespace caftan::actors
