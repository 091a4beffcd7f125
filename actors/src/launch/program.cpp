#include "caftan/actors/program.hpp"

#include <ATen/Parallel.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "caftan/app/internal/load.hpp"
#include "caftan/app/internal/plan.hpp"
#include "caftan/app/internal/reference.hpp"
#include "caftan/app/internal/resolved.hpp"
#include "caftan/base/keep_freed_memory.hpp"
#include "caftan/base/settings_io.hpp"
#include "caftan/launchers/internal/job_texts.hpp"
#include "caftan/launchers/internal/slot.hpp"
#include "launch/command_line.hpp"
#include "launch/host_of_process.hpp"
#include "launch/host_relay.hpp"
#include "launch/launcher.hpp"
#include "launch/process_title.hpp"
#include "launch/run_addresses.hpp"
#include "launch/sweep.hpp"
#include "launch/worker_process.hpp"
#include "role/spin_of_run.hpp"

namespace caftan {
namespace {

using actors::CommandLine;

constexpr int kBadFile = 2;

/// Returns the exit code: 1 if standard output takes no more, for another reason than a closed pipe.
int print(std::FILE* to, const std::string& text) {
  if ((std::fputs(text.c_str(), to) >= 0 && std::fflush(to) == 0) || to != stdout || errno == EPIPE) return 0;
  std::fputs(("error: standard output: " + std::string(std::strerror(errno)) + "\n").c_str(), stderr);
  return 1;
}

int refuse(const std::string& text) {
  print(stderr, "error: " + text + "\n");
  return kBadFile;
}

/// Opens /dev/null for each standard descriptor that is closed: otherwise the next file would get its number, and
/// output for the user would go into that file.
void keep_standard_descriptors() {
  int opened = 0;
  do {
    opened = ::open("/dev/null", O_RDWR);
  } while (opened >= 0 && opened <= STDERR_FILENO);
  if (opened >= 0) ::close(opened);
}

/// Returns the path of this program, to start it again; where /proc is not mounted, the name it was called by.
std::string executable(const char* called) {
  std::string path(4096, '\0');
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0 || static_cast<std::size_t>(size) == path.size()) return called;
  path.resize(static_cast<std::size_t>(size));
  return path;
}

/// libgomp reads its environment before main: a process that is going to have several threads of torch starts again
/// with waiting threads that sleep.
void restart_with_passive_threads(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY")) return;
  ::setenv("OMP_WAIT_POLICY", "passive", 1);
  // Returns only if it fails; then the program goes on with threads that spin.
  ::execvp(executable(argv[0]).c_str(), argv);
}

/// Returns whether this process starts the workers of all hosts.
bool is_by_ssh(const CommandLine& line, const app::Application& application) {
  return application.run.placement == app::Placement::hosts && application.run.launcher == app::LauncherChoice::ssh &&
         !line.host && !line.role;
}

Result<std::vector<WorkerId>> select_workers(const CommandLine& line, const app::Application& application,
                                             const app::Plan& plan) {
  const bool chosen = line.host || line.role;
  if (application.run.placement == app::Placement::hosts) {
    if (line.host) return plan.on_host(*line.host);
    if (line.role) return plan.select(*line.role, line.replica);
    if (is_by_ssh(line, application)) return plan.all();
    return Error(Errc::invalid_config,
                 "placement = \"hosts\": say which workers run here with --host NAME, or with "
                 "--role ROLE [--replica N], or what starts the processes with run.launcher");
  }
  if (chosen) return Error(Errc::invalid_config, "--host and --role are only for placement = \"hosts\"");
  return plan.all();
}

/// Returns the error that the address of a host is missing which only a launcher could have given.
Result<void> check_addresses(const app::Application& application, const app::Plan& plan,
                             const std::vector<WorkerId>& workers) {
  for (const app::HostSpec& host : application.hosts) {
    const bool is_needed = &host == &application.hosts.front() || std::ranges::any_of(workers, [&](WorkerId worker) {
      return plan.workers[worker.value].host == host.name;
    });
    if (!is_needed || !host.address.empty()) continue;
    return Error(Errc::invalid_config,
                 "[hosts." + host.name + "] has no address: with --host and --role no launcher gives it one");
  }
  return {};
}

/// Has a command that the program has added explain itself, as NAME COMMAND --help does.
int explain(const std::function<int(int, char**)>& command, char* called, std::string name) {
  std::string option = "--help";
  std::array<char*, 4> words{called, name.data(), option.data(), nullptr};
  return command(3, words.data());
}

/// @param own  the usage of each command that the program has added, none of which is the topic
int help(const CommandLine& line, const app::RoleTypes& types, const std::string& program,
         const std::vector<std::string>& own) {
  if (line.topic == "file") return print(stdout, app::reference_page(types));
  if (line.topic.empty()) {
    return print(stdout, actors::usage_line(program, own) + app::list_role_types(types));
  }
  const std::vector<std::string> everywhere = actors::command_names({});
  if (std::ranges::find(everywhere, line.topic) != everywhere.end()) {
    const std::array<const char*, 3> words{program.c_str(), line.topic.c_str(), "--help"};
    const auto parsed = actors::parse_command_line(program, own, 3, words.data());
    return print(stdout, std::get<actors::CommandLineText>(parsed).text);
  }
  if (const app::RoleType* const type = types.find(line.topic)) return print(stdout, app::help_role_type(*type));
  std::vector<std::string> topics = actors::command_names(own);
  for (const std::string& type : types.names()) topics.push_back(type);
  return refuse("no command and no role type '" + printable(line.topic) + "' in this program" +
                did_you_mean(line.topic, topics) + "\n" + actors::usage_line(program, own) +
                app::list_role_types(types));
}

int sweep(const CommandLine& line, const app::RoleTypes& types, std::string executable) {
  return actors::run_sweep({.types = types,
                            .executable = std::move(executable),
                            .file = line.file,
                            .assignments = line.overrides,
                            .jobs = line.jobs,
                            .out = line.out,
                            .metric = line.metric});
}

int plot(const actors::PlotCommand& command) {
  const auto drawn = actors::draw_plot(command);
  return drawn ? print(stdout, printable(command.out) + "\n") : refuse(drawn.error().text());
}

/// Returns the settings of the command line, behind those that the printed form of a plan needs.
std::vector<std::string> settings_of(const CommandLine& line) {
  std::vector<std::string> settings;
  if (line.slurm) settings = launchers::slurm_settings();
  if (line.kubernetes) settings = launchers::kubernetes_settings();
  settings.insert(settings.end(), line.overrides.begin(), line.overrides.end());
  return settings;
}

int run_application(const CommandLine& line, const actors::RoleCatalog& catalog, const app::RoleTypes& types,
                    const actors::WorkerMain& worker_main, const app::LoadedApplication& loaded, char** argv) {
  app::Application application = loaded.application;
  CommandLine selection = line;
  if (application.run.placement == app::Placement::hosts && app::gives_addresses(application.run.launcher) &&
      !line.host && !line.role) {
    auto host = actors::host_of_process(application);
    if (!host) return refuse(host.error().text());
    selection.host = *std::move(host);
  }
  const app::Plan plan = app::make_plan(application);
  auto workers = select_workers(selection, application, plan);
  if (!workers) return refuse(workers.error().text());
  for (app::HostSpec& host : application.hosts) {
    const bool is_first = &host == &application.hosts.front();
    const bool is_here =
        std::ranges::any_of(*workers, [&](WorkerId id) { return plan.workers[id.value].host == host.name; });
    if (!is_here || (is_by_ssh(line, application) && !is_first)) continue;
    if (const auto taken = actors::take_interface(host); !taken) return refuse(taken.error().text());
  }
  if (const auto complete = check_addresses(application, plan, *workers); !complete) {
    return refuse(complete.error().text());
  }
  int torch_threads = 1;
  for (const app::PlannedWorker& worker : plan.workers) torch_threads = std::max(torch_threads, worker.torch_threads);
  if (torch_threads > 1) restart_with_passive_threads(argv);
  if (application.run.placement == app::Placement::one_process) {
    at::set_num_threads(torch_threads);  // before any thread was started
  }
  const auto outcome = actors::launch({.catalog = catalog,
                                       .types = types,
                                       .application = application,
                                       .plan = plan,
                                       .worker_main = worker_main,
                                       .workers = *std::move(workers),
                                       .executable = executable(argv[0]),
                                       .by_ssh = is_by_ssh(selection, application),
                                       .warnings = loaded.diagnostics.render(::isatty(STDERR_FILENO) == 1)});
  if (outcome.must_exit) {
    std::fflush(nullptr);
    ::_exit(outcome.exit_code);
  }
  return outcome.exit_code;
}

/// Returns a line for the plan that says which channel workers of this machine use, and why not another, where the
/// plan's table does not say all of that.
std::string channel_text(const app::Application& application, const app::Plan& plan) {
  const std::string about = actors::about_channel(application, plan);
  if (about.empty()) return {};
  const bool hosts = application.run.placement == app::Placement::hosts;
  const actors::HostChannel channel =
      hosts ? actors::channel_between_hosts(application) : actors::channel_of_host(application);
  return "channel here: " + std::string(channel.facts->name) + ", " + about + "\n";
}

/// Returns a line for the plan that says what the launcher of the file offers here; nothing for a file without one.
std::string launcher_text(const app::Application& application) {
  const bool asks =
      application.run.placement == app::Placement::hosts && app::gives_addresses(application.run.launcher);
  return asks ? launchers::slots_text(application, launchers::Environment::of(environ)) : "";
}

/// Returns a line for the plan that says what cluster.spin does on this machine; nothing where no channel has rings.
std::string spin_text(const app::Application& application, const app::Plan& plan) {
  const std::string text = plan.workers.empty() ? "" : actors::spin_of_run(application, plan, "").text;
  return text.empty() ? "" : "spin here: " + text + "\n";
}

/// Lets libtorch ask for huge pages for tensors of 2 MiB and more, unless the environment says otherwise: another
/// worker reads them out of this process's memory in half the time (ADR 23). libtorch looks at it when it first takes
/// memory.
void use_huge_pages() {
  if (::access("/sys/kernel/mm/transparent_hugepage", F_OK) == 0) ::setenv("THP_MEM_ALLOC_ENABLE", "1", 0);
}

int print_check(const CommandLine& line, const app::Application& application) {
  // Files that are missing have been named already.
  if (const auto fits = actors::check_certificates(application); !fits && fits.error().code() == Errc::invalid_config) {
    std::fputs(("warning: " + printable(fits.error().text()) + "\n").c_str(), stderr);
  }
  const std::size_t roles = application.roles.size();
  const std::size_t workers = app::make_plan(application).workers.size();
  return print(stdout, printable(line.file.string()) + " is valid: " + std::to_string(roles) +
                           (roles == 1 ? " role, " : " roles, ") + std::to_string(workers) +
                           (workers == 1 ? " worker\n" : " workers\n"));
}

int print_plan(const CommandLine& line, const app::RoleTypes& types, const app::Application& application,
               const std::string& program) {
  const app::Plan plan = app::make_plan(application);
  if (line.slurm) {
    return print(stdout, launchers::slurm_script(application, plan,
                                                 {.program = std::filesystem::absolute(program).string(),
                                                  .file = application.file.string(),
                                                  .overrides = line.overrides}));
  }
  if (line.container)
    return print(stdout, launchers::container_file(std::filesystem::path(program).filename().string()));
  if (line.kubernetes) {
    const auto secret = actors::random_hex();
    if (!secret) return refuse(secret.error().message());
    return print(stdout,
                 launchers::kubernetes_manifests(
                     application, plan,
                     {.image = line.image, .resolved = app::resolved_text(application, types), .secret = *secret}));
  }
  return print(stdout, app::render_plan(application, plan) + channel_text(application, plan) +
                           spin_text(application, plan) + launcher_text(application));
}

}  // namespace

int Program::main(int argc, char** argv) {
  keep_standard_descriptors();
  keep_freed_memory();
  use_huge_pages();
  const auto types = catalog_.types();
  if (!types) return refuse(types.error().text());
  if (actors::is_worker_process(argc, argv)) actors::run_worker_process(catalog_, *types);
  const actors::ProcessTitle process_title(argc, argv);
  const actors::WorkerMain worker_main = [&](const std::string& worker) {
    process_title.set("worker " + worker, worker);
    actors::run_worker_process(catalog_, *types);
  };
  if (actors::is_host_relay(argc, argv)) {
    restart_with_passive_threads(argv);
    actors::run_host_relay(worker_main, executable(argv[0]));
  }
  std::vector<std::string> own;
  for (const Command& command : commands_) {
    const std::string name = actors::command_name(command.usage);
    if (argc > 1 && name == argv[1]) return command.run(argc, argv);
    if (argc == 3 && name == argv[2] && std::strcmp(argv[1], "help") == 0) return explain(command.run, argv[0], name);
    own.push_back(command.usage);
  }
  const auto parsed = actors::parse_command_line(name_, own, argc, argv);
  if (const auto* text = std::get_if<actors::CommandLineText>(&parsed)) {
    const int printed = print(text->exit_code == 0 ? stdout : stderr, text->text);
    return text->exit_code == 0 ? printed : text->exit_code;
  }
  const CommandLine& line = std::get<CommandLine>(parsed);
  if (line.command == CommandLine::Command::help) return help(line, *types, name_, own);
  if (line.command == CommandLine::Command::sweep) {
    return sweep(line, *types, executable(argv[0]));
  }
  if (line.command == CommandLine::Command::plot) return plot(line.plot);

  const bool is_run = line.command == CommandLine::Command::run;
  // Data, the secret and the output folder of a pod are not on this machine.
  const auto loaded = app::load_application(
      line.file, settings_of(line), *types,
      {.mode = is_run ? app::LoadMode::run : app::LoadMode::check, .requirements = !line.kubernetes});
  if (!is_run || !loaded.diagnostics.ok()) print(stderr, loaded.diagnostics.render(::isatty(STDERR_FILENO) == 1));
  if (!loaded.diagnostics.ok()) return kBadFile;
  switch (line.command) {
    case CommandLine::Command::run:
      return run_application(line, catalog_, *types, worker_main, loaded, argv);
    case CommandLine::Command::plan:
      return print_plan(line, *types, loaded.application, executable(argv[0]));
    case CommandLine::Command::check:
      return print_check(line, loaded.application);
    case CommandLine::Command::sweep:
    case CommandLine::Command::plot:
    case CommandLine::Command::help:
      break;
  }
  return 0;
}

}  // namespace caftan
