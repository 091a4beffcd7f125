/// The command `caftan certs`: makes an authority and a certificate for each host, for the table [tls] of a file.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "caftan/base/result.hpp"

namespace caftan::certs {

inline constexpr const char* kUsage = "certs DIR --hosts NAME,...";

struct Wish {
  std::filesystem::path folder{};    ///< a new one
  std::vector<std::string> hosts{};  ///< names or addresses of hosts, or names of workers
};

/// @param words  behind `certs`
/// Errors: invalid_config.
Result<Wish> parse(std::span<const std::string> words);

/// Writes authority.pem, and NAME.pem and NAME.key (mode 0600) for each host, into the new folder. The key of the
/// authority is not kept: it signs nothing more. Errors: invalid_config (the folder exists, a name that no certificate
/// can have), io_error; nothing is left then.
Result<void> write(const Wish& wish);

/// Carries out the command line `caftan certs ...`. Returns the exit code: 0, or 2 with an error on standard error.
int run_command(int argc, char** argv);

}  // namespace caftan::certs
