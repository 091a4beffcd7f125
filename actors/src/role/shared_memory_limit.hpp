/// The default of `limits.shared_memory`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace caftan::actors {

/// Returns how many bytes each worker of this host may share with other processes: an eighth of the memory of the
/// machine, or of its control group if that has less, over the workers, at most 1 GiB.
/// @param groups  where the control groups of this process are
std::uint64_t default_shared_memory(std::size_t workers, const std::filesystem::path& groups = "/sys/fs/cgroup");

}  // namespace caftan::actors
