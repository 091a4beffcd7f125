#include "new_project/new_project.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>

#include "caftan/base/settings_io.hpp"
#include "caftan/base/whole_file.hpp"

namespace caftan::new_project {
namespace {

constexpr std::size_t kLongestName = 64;
constexpr std::array<const char*, 7> kPrograms{"counting",  "calls", "training",  "agent",
                                               "reinforce", "beam",  "simulation"};
/// Targets that CMake keeps for itself.
constexpr std::array<const char*, 9> kReserved{"all",     "clean",          "edit_cache",    "help", "install",
                                               "package", "package_source", "rebuild_cache", "test"};

Error invalid(std::string text) { return {Errc::invalid_config, std::move(text)}; }

Result<void> check_name(const std::string& name) {
  const bool is_made_well = std::ranges::all_of(
      name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'; });
  if (name.empty() || !is_made_well || name.front() < 'a' || name.front() > 'z' || name.size() > kLongestName) {
    return invalid("the name '" + printable(name) + "' must be of a-z 0-9 - _, a letter first, 1..64 characters");
  }
  if (std::ranges::any_of(kReserved, [&](const char* reserved) { return name == reserved; })) {
    return invalid("the name '" + name + "' is one that CMake keeps for a target of its own");
  }
  return {};
}

bool is_of_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

bool has_program(const Place& place, const std::string& program) {
  std::error_code error;
  return std::filesystem::is_regular_file(place.guide / program / "main.cpp", error);
}

Result<void> check_program(const Place& place, const std::string& program) {
  std::string there;
  for (const char* const name : kPrograms) {
    if (!has_program(place, name)) continue;
    if (program == name) return {};
    there += (there.empty() ? "" : ", ") + std::string(name);
  }
  if (there.empty()) return invalid("there are no programs in " + place.guide.string());
  const bool is_of_guide = std::ranges::all_of(program, is_of_word) && has_program(place, program);
  if (is_of_guide) {
    return invalid("--from: new makes no project of '" + program + "', only of: " + there +
                   "; the program itself is in " + (place.guide / program).string() +
                   ": copy this folder, its CMakeLists.txt builds it with the package");
  }
  return invalid("--from: the guide has no program '" + printable(program) + "'; new makes projects of: " + there);
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// Replaces `from` where it is a whole word.
std::string word_replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    const std::size_t end = at + from.size();
    if ((at > 0 && is_of_word(text[at - 1])) || (end < text.size() && is_of_word(text[end]))) {
      at = end;
      continue;
    }
    text.replace(at, from.size(), to);
    at += to.size();
  }
  return text;
}

std::string cmake_text(std::string text, const Wish& wish, bool has_file) {
  text = word_replaced(std::move(text), wish.from, wish.name);
  if (text.find("add_test(") != std::string::npos) return text;
  const std::string arguments = has_file ? " run ${PROJECT_SOURCE_DIR}/" + wish.name + ".toml" : std::string();
  return text + "\nenable_testing()\nadd_test(NAME " + wish.name + " COMMAND " + wish.name + arguments + ")\n";
}

std::string source_text(std::string text, const Wish& wish) {
  text = replaced(std::move(text), "program(\"" + wish.from + "\")", "program(\"" + wish.name + "\")");
  return word_replaced(std::move(text), wish.from + ".toml", wish.name + ".toml");
}

std::string readme_text(const Wish& wish, const Place& place) {
  std::string text =
      "# " + wish.name + "\n\nMade from the program `" + wish.from + "` of Caftan's guide. In this folder:\n\n";
  for (const std::string& step : steps(wish, place)) text += "    " + step + "\n";
  return text;
}

/// Returns the word as a shell reads it.
std::string quoted(const std::string& word) {
  const bool is_plain =
      std::ranges::all_of(word, [](char c) { return is_of_word(c) || c == '/' || c == '.' || c == '+'; });
  return is_plain ? word : "'" + replaced(word, "'", "'\\''") + "'";
}

Result<void> write_text(const std::filesystem::path& file, const std::string& text) {
  std::ofstream stream(file, std::ios::binary);
  stream << text;
  stream.close();
  if (!stream) return Error(Errc::io_error, file.string() + ": " + std::strerror(errno));
  return {};
}

Result<void> copy_file(const std::filesystem::path& from, const std::filesystem::path& folder, const Wish& wish,
                       bool has_file) {
  auto text = base::read_whole_file(from);
  if (!text) return text.error();
  const std::string name = from.filename().string();
  if (name == "CMakeLists.txt") return write_text(folder / name, cmake_text(*std::move(text), wish, has_file));
  const bool is_file = name == wish.from + ".toml";
  return write_text(folder / (is_file ? wish.name + ".toml" : name), source_text(*std::move(text), wish));
}

Result<void> fill(const std::filesystem::path& folder, const Wish& wish, const Place& place) {
  std::error_code error;
  const std::filesystem::path program = place.guide / wish.from;
  const bool has_file = std::filesystem::exists(program / (wish.from + ".toml"), error);
  std::filesystem::directory_iterator entries(program, error);
  if (error) return Error(Errc::io_error, program.string() + ": " + error.message());
  for (const std::filesystem::directory_entry& entry : entries) {
    if (!entry.is_regular_file(error)) continue;
    if (auto copied = copy_file(entry.path(), folder, wish, has_file); !copied) return copied;
  }
  if (auto written = write_text(folder / "README.md", readme_text(wish, place)); !written) return written;
  return write_text(folder / ".gitignore", "/build/\n/runs/\n");
}

int refuse(const Error& error) {
  std::fputs(("error: " + error.text() + "\n").c_str(), stderr);
  return 2;
}

}  // namespace

Result<Wish> parse(std::span<const std::string> words) {
  Wish wish;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string option = words[i].substr(0, words[i].find('='));
    if (option == "--from" || option == "--into") {
      const bool is_next = option.size() == words[i].size();
      if (is_next && i + 1 == words.size()) return invalid(option + " needs a value");
      const std::string value = is_next ? words[++i] : words[i].substr(option.size() + 1);
      if (value.empty()) return invalid(option + " needs a value");
      if (option == "--from") {
        wish.from = value;
      } else {
        wish.into = value;
      }
    } else if (words[i].starts_with('-')) {
      return invalid("no option '" + printable(words[i]) + "'; usage: caftan " + kUsage);
    } else if (!wish.name.empty()) {
      return invalid("one NAME only, there is '" + printable(words[i]) + "' too; usage: caftan " + kUsage);
    } else {
      wish.name = words[i];
      if (auto checked = check_name(wish.name); !checked) return checked.error();
    }
  }
  if (wish.name.empty()) return invalid("the NAME is missing; usage: caftan " + std::string(kUsage));
  return wish;
}

Place find_caftan(const std::filesystem::path& executable, const std::filesystem::path& source,
                  const std::filesystem::path& build) {
  const std::filesystem::path prefix = executable.parent_path().parent_path();
  const std::filesystem::path installed = prefix / "share" / "caftan" / "guide";
  std::error_code error;
  if (std::filesystem::is_directory(installed, error)) return {.guide = installed, .prefix = prefix};
  const std::filesystem::path package = build / "package";
  return {.guide = source / "tests" / "guide",
          .prefix = package,
          .install = "cmake --build " + quoted(build.string()) + " && cmake --install " + quoted(build.string()) +
                     " --prefix " + quoted(package.string())};
}

Result<std::filesystem::path> write(const Wish& wish, const Place& place) {
  if (auto checked = check_program(place, wish.from); !checked) return checked.error();
  std::error_code error;
  if (!std::filesystem::is_directory(wish.into, error)) {
    return invalid("--into: " + printable(wish.into.string()) + " is no folder");
  }
  const std::filesystem::path folder = (wish.into / wish.name).lexically_normal();
  if (!std::filesystem::create_directory(folder, error)) {
    // An existing folder is no error for create_directory, an existing file is.
    if (error && error != std::errc::file_exists) {
      return Error(Errc::io_error, folder.string() + ": " + error.message());
    }
    return invalid(folder.string() + " exists, and nothing is overwritten; give the project another name or place");
  }
  if (auto filled = fill(folder, wish, place); !filled) {
    std::filesystem::remove_all(folder, error);
    return filled.error();
  }
  return folder;
}

std::vector<std::string> steps(const Wish& wish, const Place& place) {
  std::error_code error;
  const bool has_file = std::filesystem::exists(place.guide / wish.from / (wish.from + ".toml"), error);
  std::vector<std::string> lines;
  if (!place.install.empty()) lines.push_back(place.install);
  lines.push_back("cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=" +
                  quoted(place.prefix.string()));
  lines.emplace_back("cmake --build build");
  lines.push_back("./build/" + wish.name + (has_file ? " run " + wish.name + ".toml" : ""));
  lines.emplace_back("ctest --test-dir build");
  return lines;
}

int run_command(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 2), argv + argc);
  if (std::ranges::find(words, "--help") != words.end() || std::ranges::find(words, "-h") != words.end()) {
    std::fputs(("usage: caftan " + std::string(kUsage) + "\n").c_str(), stdout);
    return 0;
  }
  const auto wish = parse(words);
  if (!wish) return refuse(wish.error());
  std::error_code error;
  const std::filesystem::path executable = std::filesystem::read_symlink("/proc/self/exe", error);
  const Place place = find_caftan(error ? std::filesystem::path(argv[0]) : executable, CAFTAN_CHECKOUT, CAFTAN_BUILD);
  const auto folder = write(*wish, place);
  if (!folder) return refuse(folder.error());
  std::string text = "wrote " + folder->string() + ", from the guide's program " + wish->from + ". Build and run it:\n";
  text += "    cd " + quoted(folder->string()) + "\n";
  for (const std::string& step : steps(*wish, place)) text += "    " + step + "\n";
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace caftan::new_project
