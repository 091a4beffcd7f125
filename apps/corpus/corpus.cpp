#include "corpus/corpus.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <set>
#include <system_error>

#include "caftan/base/whole_file.hpp"
#include "corpus/utf8.hpp"

namespace caftan::corpus {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLicenses = "/usr/share/common-licenses";
constexpr const char* kBible = "/usr/bin/bible";

Error missing(const fs::path& path, const std::string& why) {
  return {Errc::io_error,
          path.string() + ": " + why + "; corpus.path names a UTF-8 text file or a folder of such files"};
}

Result<std::vector<fs::path>> files_of(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return missing(path, "there is no such file");
  if (fs::is_regular_file(status)) return std::vector<fs::path>{path};
  if (!fs::is_directory(status)) return missing(path, "it is neither a file nor a folder");
  std::set<fs::path> files;
  fs::directory_iterator entries(path, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const fs::path file = fs::canonical(entries->path(), error);
    if (!error && fs::is_regular_file(file, error)) files.insert(file);
    error.clear();  // a symbolic link that leads nowhere is skipped
  }
  if (error) return missing(path, error.message());
  if (files.empty()) return Error(Errc::invalid_config, path.string() + ": the folder has no files to learn from");
  return std::vector<fs::path>(files.begin(), files.end());
}

Result<std::string> read_file(const fs::path& path) {
  auto text = base::read_whole_file(path);
  if (!text) return missing(path, "it cannot be read");
  return text;
}

Result<void> check_text(const std::string& name, const std::string& text) {
  if (text.empty()) return Error(Errc::invalid_config, name + ": it is empty, there is nothing to learn");
  const std::size_t valid = first_invalid_utf8(text);
  if (valid == text.size()) return {};
  return Error(Errc::malformed_payload,
               name + ": the byte at offset " + std::to_string(valid) +
                   " is not UTF-8; convert the file, for example with: iconv -f latin1 -t utf-8");
}

Error bible_failed(const std::string& why) { return {Errc::io_error, std::string(kBible) + ": " + why}; }

/// Returns what the command of the package bible-kjv prints for the whole Bible.
Result<std::string> read_bible() {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return bible_failed(std::generic_category().message(errno));
  posix_spawn_file_actions_t actions{};
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  std::array<char*, 4> words{const_cast<char*>("bible"), const_cast<char*>("-f"), const_cast<char*>("ge1:1-re22:21"),
                             nullptr};
  pid_t pid = 0;
  const int started = ::posix_spawn(&pid, kBible, &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(pipe[1]);
  std::string text;
  std::array<char, 65536> piece{};
  for (;;) {
    const ssize_t size = started == 0 ? ::read(pipe[0], piece.data(), piece.size()) : 0;
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(size));
  }
  ::close(pipe[0]);
  if (started != 0) return bible_failed(std::generic_category().message(started));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return bible_failed("it failed");
  return text;
}

}  // namespace

std::size_t first_invalid_utf8(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    const CodePoint next = next_code_point(text, at);
    if (next.size == 0) return at;
    at += next.size;
  }
  return at;
}

Result<std::vector<fs::path>> find_corpus(const CorpusConfig& config) {
  if (config.path) return files_of(*config.path);
  if (config.name == CorpusConfig::Name::common_licenses) return files_of(kLicenses);
  if (config.name == CorpusConfig::Name::sample) return std::vector<fs::path>();
  if (::access(kBible, X_OK) != 0) {
    return Error(Errc::io_error, std::string("the King James Bible is not installed; get it with: ") +
                                     "apt-get install --no-install-recommends bible-kjv bible-kjv-text");
  }
  return std::vector<fs::path>();
}

Result<Corpus> read_corpus(const CorpusConfig& config) {
  const auto files = find_corpus(config);
  if (!files) return files.error();
  Corpus corpus;
  if (files->empty() && config.name == CorpusConfig::Name::sample) return make_sample();
  if (files->empty()) {
    auto text = read_bible();
    if (!text) return text.error();
    if (auto good = check_text(kBible, *text); !good) return good.error();
    return Corpus{.source = "the King James Bible", .texts = {*std::move(text)}, .names = {"King James Bible"}};
  }
  for (const fs::path& file : *files) {
    auto text = read_file(file);
    if (!text) return text.error();
    if (auto good = check_text(file.string(), *text); !good) return good.error();
    corpus.texts.push_back(*std::move(text));
    corpus.names.push_back(file.filename().string());
  }
  const std::string place = config.path ? config.path->string() : kLicenses;
  corpus.source = files->size() == 1 ? files->front().string() : std::to_string(files->size()) + " files of " + place;
  return corpus;
}

}  // namespace caftan::corpus
