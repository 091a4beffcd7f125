// Slurm: srun sets SLURM_PROCID, SLURM_NTASKS and the list of nodes for each task.
#include <charconv>
#include <initializer_list>

#include "caftan/launchers/internal/node_list.hpp"
#include "launcher.hpp"

namespace caftan::launchers {
namespace {

const char* first_set(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    if (environment.has(name)) return name;
  }
  return *names.begin();
}

/// A script of sbatch has SLURM_PROCID, too; only tasks of srun have the number of a step.
bool is_task(const Environment& environment) {
  return environment.has("SLURM_PROCID") && environment.has("SLURM_STEP_ID");
}

/// Returns the first of the ports that Slurm has set aside for the step ("12000-12003"), where it does so, else one
/// that follows from the numbers of job and step.
std::uint16_t port_of_step(const Environment& environment) {
  const std::string reserved = environment.find("SLURM_STEP_RESV_PORTS").value_or("");
  std::uint16_t port = 0;
  std::from_chars(reserved.data(), reserved.data() + reserved.size(), port);
  if (port != 0) return port;
  return port_for(environment.find("SLURM_JOB_ID").value_or("") + "." + environment.find("SLURM_STEP_ID").value_or(""));
}

Result<Slot> find_by_slurm(const Environment& environment) {
  if (!is_task(environment)) {
    return Error(Errc::invalid_config,
                 environment.has("SLURM_JOB_ID")
                     ? "run.launcher = \"slurm\": this process is in job " + *environment.find("SLURM_JOB_ID") +
                           " of Slurm, but is no task of a step: start it with srun"
                     : "run.launcher = \"slurm\": SLURM_PROCID is not set: start it with srun, or print a batch script "
                       "with plan FILE --slurm");
  }
  auto slot = ranked(environment, "slurm", "SLURM_PROCID",
                     first_set(environment, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"}));
  if (!slot) return slot;
  slot->is_child = true;
  const char* const list = first_set(environment, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  const auto nodes = expand_node_list(environment.find(list).value_or(""));
  if (!nodes) return Error(Errc::invalid_config, std::string("the variable ") + list + ": " + nodes.error().text());
  slot->first = nodes->front();
  slot->port = port_of_step(environment);
  if (const auto taken = take_master(environment, *slot); !taken) return taken.error();
  return slot;
}

}  // namespace

constinit const Launcher kSlurm{
    .name = "slurm",
    .choice = app::LauncherChoice::slurm,
    .is_here = is_task,
    .find = find_by_slurm,
    .offered = [](const Environment& environment) -> std::optional<int> {
      // Without --ntasks, srun starts one task on each node of the allocation.
      const auto tasks = environment.number(
          first_set(environment, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_JOB_NUM_NODES"}), 1, kMostSlots);
      return tasks ? std::optional(*tasks) : std::nullopt;
    },
    .command = [](int slots) { return "srun --ntasks=" + std::to_string(slots); }};

}  // namespace caftan::launchers
