// mpirun: the variables of OpenMPI (over PMIx), and those of PMI, which MPICH and Intel's MPI set. No MPI is called.
#include <array>

#include "launcher.hpp"

namespace caftan::launchers {
namespace {

struct MpiNames {
  const char* rank;
  const char* size;
  const char* on_host;  ///< how many of the processes are on this host
};
constexpr std::array<MpiNames, 2> kMpiNames{
    MpiNames{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    MpiNames{"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"}};

const MpiNames* names_of(const Environment& environment) {
  for (const MpiNames& names : kMpiNames) {
    if (environment.has(names.rank)) return &names;
  }
  return nullptr;
}

/// Returns the name of the job, the same in all of its processes; nothing if no variable has it.
std::optional<std::string> job_of(const Environment& environment) {
  for (const char* const name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID"}) {
    if (auto job = environment.find(name)) return job;
  }
  return std::nullopt;
}

Result<Slot> find_by_mpi(const Environment& environment) {
  const MpiNames* const names = names_of(environment);
  if (!names) {
    return Error(Errc::invalid_config,
                 std::string("run.launcher = \"mpi\": no mpirun has started this process: ") +
                     (environment.has("PMIX_RANK") ? "PMIX_RANK alone does not say how many there are; "
                                                   : "neither OMPI_COMM_WORLD_RANK nor PMI_RANK is set; ") +
                     "start it with mpirun -n N of OpenMPI, MPICH or Intel's MPI");
  }
  auto slot = ranked(environment, "mpi", names->rank, names->size);
  if (!slot) return slot;
  slot->is_child = true;
  const auto on_host = environment.number(names->on_host, 1, kMostSlots);
  if (on_host && *on_host == slot->size) slot->first = "127.0.0.1";
  if (const auto job = job_of(environment)) slot->port = port_for(*job);
  if (const auto taken = take_master(environment, *slot); !taken) return taken.error();
  return slot;
}

}  // namespace

constinit const Launcher kMpi{
    .name = "mpi",
    .choice = app::LauncherChoice::mpi,
    .is_here = [](const Environment& environment) { return names_of(environment) != nullptr; },
    .find = find_by_mpi,
    .offered = [](const Environment& environment) -> std::optional<int> {
      const MpiNames* const names = names_of(environment);
      const auto size = environment.number(names ? names->size : "", 1, kMostSlots);
      return size ? std::optional(*size) : std::nullopt;
    },
    .command = [](int slots) { return "mpirun -n " + std::to_string(slots); }};

}  // namespace caftan::launchers
