/// What `caftan plan FILE` prints for a cluster: a batch script of Slurm, manifests of Kubernetes, a container file.
/// Each starts as many processes as the file needs slots. Rules: docs/protocols/launchers.md (LN-7, LN-8).
#pragma once

#include <string>
#include <vector>

#include "caftan/app/internal/application.hpp"
#include "caftan/app/internal/plan.hpp"

namespace caftan::launchers {

/// The command that the job runs.
struct RunCommand {
  std::string program{};  ///< an absolute path
  std::string file{};     ///< likewise
  std::vector<std::string> overrides{};
};

/// Returns the settings that a file needs in a job of Slurm; they stand before those of the command line.
std::vector<std::string> slurm_settings();
/// Returns a script for sbatch. Precondition: the application was loaded with `slurm_settings`.
std::string slurm_script(const app::Application& application, const app::Plan& plan, const RunCommand& command);

/// As slurm_settings, for a pod.
std::vector<std::string> kubernetes_settings();
struct KubernetesJob {
  std::string image{};     ///< empty: the run's name
  std::string resolved{};  ///< the resolved file, which each pod runs
  std::string secret{};    ///< the cluster's secret, text without control characters
};
/// Returns the manifests of a Secret, a ConfigMap with the file, a headless Service and an indexed Job, in one YAML
/// file. Precondition: the application was loaded with `kubernetes_settings`.
std::string kubernetes_manifests(const app::Application& application, const app::Plan& plan, const KubernetesJob& job);

/// Returns a container file for an image of the program. It is built in a folder that holds the program and, as
/// `caftan-package`, the installed package.
/// @param program  the file name of the program
std::string container_file(const std::string& program);

}  // namespace caftan::launchers
