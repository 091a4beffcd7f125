// The batch script of a run.
#include <chrono>

#include "caftan/launchers/internal/job_texts.hpp"
#include "caftan/launchers/internal/slot.hpp"
#include "job_size.hpp"
#include "shell_word.hpp"

namespace caftan::launchers {
namespace {

/// Returns whether each worker is a slot, since the file has no [hosts]. Several workers may run on one node then.
bool is_by_worker(const app::Application& application) {
  const SettingsPlace& place = application.hosts.front().place;
  return place.line == 0 && place.override_index < 0;
}

}  // namespace

std::vector<std::string> slurm_settings() { return {"run.placement=hosts", "run.launcher=slurm"}; }

std::string slurm_script(const app::Application& application, const app::Plan& plan, const RunCommand& command) {
  const std::string tasks = std::to_string(slots_needed(application));
  const std::string cores = std::to_string(cores_of_a_host(application, plan));
  const app::RunSettings& run = application.run;
  std::string text = "#!/bin/sh\n# A process of " + run.name + " for each " +
                     (is_by_worker(application) ? "worker" : "host of the file, on a node of its own") +
                     ". Start it with sbatch.\n#SBATCH --job-name=" + run.name + "\n#SBATCH --output=" + run.name +
                     "-%j.log\n#SBATCH --ntasks=" + tasks + "\n";
  if (!is_by_worker(application)) text += "#SBATCH --nodes=" + tasks + "\n#SBATCH --ntasks-per-node=1\n";
  text += "#SBATCH --cpus-per-task=" + cores + "\n";
  if (run.wall) {
    text +=
        "#SBATCH --time=" + std::to_string(std::chrono::ceil<std::chrono::minutes>(longest_run(run)).count()) + "\n";
  }
  text += "exec srun --ntasks=" + tasks + " --cpus-per-task=" + cores + " " + shell_word(command.program) + " run " +
          shell_word(command.file);
  for (const std::string& setting : slurm_settings()) text += " " + shell_word(setting);
  for (const std::string& setting : command.overrides) text += " " + shell_word(setting);
  return text + "\n";
}

}  // namespace caftan::launchers
