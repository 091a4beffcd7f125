#include "launch/worker_process.hpp"

#include <ATen/Parallel.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <variant>

#include "caftan/app/internal/load.hpp"
#include "caftan/app/internal/run_directory.hpp"
#include "caftan/run/internal/death.hpp"
#include "launch/fatal_signals.hpp"
#include "launch/run_process.hpp"
#include "role/own_cores.hpp"
#include "role/spin_of_run.hpp"
#include "worker/runners.hpp"

namespace caftan::actors {
namespace {

/// Output goes to the worker's log.
[[noreturn]] void give_up(const Error& error) {
  const std::string line = error.message() + "\n";
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  ::_exit(1);
}

/// Exits without unwinding the stack: threads of user code may still run, and no result has to be handed back.
[[noreturn]] void leave(int code) {
  std::fflush(nullptr);
  ::_exit(code);
}

/// Reads commands until the end, and shows each heartbeat that this process lives (RN-1). Ends the process when the
/// launcher is gone: no worker process outlives it.
void follow(const ControlSocket& control, WorkerSet& workers, std::uint32_t worker, base::Duration heartbeat) {
  const base::SteadyClock clock;
  base::TimePoint next_beat = clock.now();
  for (;;) {
    if (clock.now() >= next_beat) {
      // A control socket without room holds enough signs of life that are unread.
      (void)control.offer({.worker = worker, .body = run::Alive{}});
      next_beat = clock.now() + heartbeat;
    }
    const auto command = control.receive_command(next_beat);
    if (!command) leave(1);
    if (!*command) continue;
    // Before this process ends, or code of a role learns of the command: a process that the command makes end has
    // answered (RN-23).
    (void)control.send(run::Event{.worker = worker, .body = run::Answered{}});
    // A command before the workers have joined means that the launcher has given up the start; no role runs that would
    // need a clean end.
    if (!workers.has_joined()) leave(0);
    if (std::holds_alternative<run::Stop>(**command)) workers.stop();
    if (const auto* reason = std::get_if<run::Leave>(&**command)) workers.leave(reason->error);
  }
}

/// Returns whether a relay reads the output of this process and passes it on to the launcher (LN-12).
bool is_relayed() {
  struct stat output {};
  return ::fstat(STDERR_FILENO, &output) == 0 && S_ISFIFO(output.st_mode);
}

/// Keeps the process to its cores (RN-25), and makes its runners. Sets what the logs say of both.
/// @param worker  of this process, the first one
std::shared_ptr<transport::PollingExecutor> make_executor(const app::PlannedWorker& worker, WorkerSetOptions& options) {
  SpinOfRun spin = spin_of_run(options.application, options.plan, worker.host);
  // Before any thread is started, since a thread keeps to the cores of the thread that starts it.
  OwnCores own = own_cores(options.plan, worker, allowed_cores());
  if (!own.cores.empty()) {
    if (const std::error_code refused = keep_to(own.cores))
      own = {.cores = {}, .text = "on all cores: the system refuses others (run.own_cores): " + refused.message()};
  }
  // On one core a thread that spins takes the time of the one that computes.
  if (own.cores.size() == 1 && spin.options != transport::SpinOptions()) spin = {.options = {}, .text = "off (1 core)"};
  options.spin = spin.text;
  options.own_cores = own.text;
  return make_runners(options.workers.size(), spin.options);
}

}  // namespace

bool is_worker_process(int argc, char** argv) {
  return argc == 3 && std::strcmp(argv[1], kWorkerArgument) == 0 && ::fcntl(kControlDescriptor, F_GETFD) >= 0;
}

void run_worker_process(const RoleCatalog& catalog, const app::RoleTypes& types) {
  const FatalSignals fatal(
      [](int number) {
        return FatalSignals::Words{.line = std::string(kKilledBy) + run::name_of_signal(number) + "; its calls:\n"};
      },
      {}, true);
  // Threads of roles still run, and exit() would destroy what they use.
  (void)::on_exit([](int status, void*) { leave(status); }, nullptr);
  ::fcntl(kControlDescriptor, F_SETFD, FD_CLOEXEC);
  const ControlSocket control(kControlDescriptor);
  const auto first = control.receive_command();
  if (!first) leave(1);
  const auto* const assignment = std::get_if<run::Assign>(&*first);
  if (!assignment) leave(0);  // stopped before it began
  if (assignment->workers.empty()) give_up(Error(Errc::malformed_payload, "an assignment without workers"));
  const auto directory = app::RunDirectory::open(assignment->run_directory);
  if (!directory) give_up(directory.error());
  const auto loaded = app::load_application(directory->resolved_file(), {}, types, {.requirements = false});
  if (!loaded.diagnostics.ok()) give_up(loaded.diagnostics.to_error());
  const app::Plan plan = app::make_plan(loaded.application);

  WorkerSetOptions options{.catalog = catalog,
                           .application = loaded.application,
                           .plan = plan,
                           .secret = assignment->secret,
                           .run_directory = assignment->run_directory,
                           .logs_to_output = is_relayed()};
  int torch_threads = 1;
  for (const std::uint32_t worker : assignment->workers) {
    if (worker >= plan.workers.size()) give_up(Error(Errc::malformed_payload, "an assignment of an unknown worker"));
    options.workers.push_back(WorkerId{worker});
    torch_threads = std::max(torch_threads, plan.workers[worker].torch_threads);
  }
  at::set_num_threads(torch_threads);  // before any thread was started
  for (const std::uint32_t worker : assignment->launched) {
    if (worker < plan.workers.size()) options.siblings.push_back(plan.workers[worker].name);
  }
  for (const auto& [name, address] : assignment->members) options.members.push_back({name, address});
  options.executor = make_executor(plan.workers[assignment->workers.front()], options);
  options.sink = [&control](const run::Event& event) {
    // An event that cannot be sent has no receiver: the launcher is gone, and `follow` ends this process.
    (void)control.send(event);
  };
  WorkerSet workers(std::move(options));
  std::thread([&] {
    follow(control, workers, assignment->workers.front(), loaded.application.cluster.heartbeat);
  }).detach();
  leave(workers.run() ? 0 : 1);
}

}  // namespace caftan::actors
