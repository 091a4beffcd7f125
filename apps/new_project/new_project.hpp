/// The command `caftan new`: writes a project into a new folder, made from a program of the guide.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "caftan/base/result.hpp"

namespace caftan::new_project {

inline constexpr const char* kUsage =
    "new NAME [--from counting|calls|training|agent|reinforce|beam|simulation] [--into DIR]";

struct Wish {
  std::string name{};
  std::string from = "counting";     ///< a program of the guide
  std::filesystem::path into = ".";  ///< an existing folder, in which the project gets the folder NAME
};

/// @param words  behind `new`
/// Errors: invalid_config.
Result<Wish> parse(std::span<const std::string> words);

/// Where Caftan is.
struct Place {
  std::filesystem::path guide{};   ///< has a folder for each program
  std::filesystem::path prefix{};  ///< for CMAKE_PREFIX_PATH
  std::string install{};           ///< the command that fills the prefix; empty = the prefix is filled
};

/// Returns the package that an installed executable belongs to, else the checkout.
/// @param source, build  of the checkout
Place find_caftan(const std::filesystem::path& executable, const std::filesystem::path& source,
                  const std::filesystem::path& build);

/// Writes CMakeLists.txt, the sources, NAME.toml if the program has a file, README.md and .gitignore into the new
/// folder INTO/NAME. Returns its path. Errors: invalid_config (no such program in the guide, INTO/NAME exists),
/// io_error; nothing is left then.
Result<std::filesystem::path> write(const Wish& wish, const Place& place);

/// Returns the commands that build, run and test the project, in its folder, a line each.
std::vector<std::string> steps(const Wish& wish, const Place& place);

/// Carries out the command line `caftan new ...`. Returns the exit code: 0, or 2 with an error on standard error.
int run_command(int argc, char** argv);

}  // namespace caftan::new_project
