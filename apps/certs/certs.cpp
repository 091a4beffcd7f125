#include "certs/certs.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "caftan/base/settings_io.hpp"
#include "caftan/net/internal/tls_authority.hpp"

namespace caftan::certs {
namespace {

Error invalid(std::string text) { return {Errc::invalid_config, std::move(text)}; }

bool is_name(const std::string& name) {
  return !name.empty() && name.front() != '-' && name.front() != '.' && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_' || c == ':';
  });
}

Result<std::vector<std::string>> split(const std::string& list) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string name = list.substr(at, end - at);
    if (!is_name(name)) return invalid("--hosts: '" + printable(name) + "' is no name of a host");
    if (std::ranges::find(names, name) != names.end()) return invalid("--hosts: '" + name + "' is there twice");
    names.push_back(name);
    at = end + 1;
  }
  return names;
}

/// Writes a file that only its owner may read.
Result<void> put(const std::filesystem::path& file, const std::string& text) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const bool written = fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int failed = errno;
  const bool closed = fd < 0 || ::close(fd) == 0;
  if (written && closed) return {};
  return Error(Errc::io_error, file.string() + ": " + std::strerror(failed));
}

Result<void> fill(const Wish& wish) {
  const auto authority = net::TlsAuthority::make();
  if (!authority) return authority.error();
  if (auto done = put(wish.folder / "authority.pem", authority->pair().certificate); !done) return done;
  for (const std::string& host : wish.hosts) {
    const auto pair = authority->issue({host});
    if (!pair) return pair.error();
    if (auto done = put(wish.folder / (host + ".pem"), pair->certificate); !done) return done;
    if (auto done = put(wish.folder / (host + ".key"), pair->key); !done) return done;
  }
  return {};
}

}  // namespace

Result<Wish> parse(std::span<const std::string> words) {
  Wish wish;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--hosts") {
      if (i + 1 == words.size()) return invalid("--hosts needs names, such as head,node");
      auto names = split(words[++i]);
      if (!names) return names.error();
      wish.hosts = *std::move(names);
    } else if (words[i].starts_with('-')) {
      return invalid("no option '" + printable(words[i]) + "'; usage: caftan " + kUsage);
    } else if (!wish.folder.empty()) {
      return invalid("one DIR only, there is '" + printable(words[i]) + "' too; usage: caftan " + kUsage);
    } else {
      wish.folder = words[i];
    }
  }
  if (wish.folder.empty()) return invalid("the DIR is missing; usage: caftan " + std::string(kUsage));
  if (wish.hosts.empty()) return invalid("--hosts is missing; usage: caftan " + std::string(kUsage));
  return wish;
}

Result<void> write(const Wish& wish) {
  std::error_code error;
  if (!std::filesystem::create_directory(wish.folder, error)) {
    if (error && error != std::errc::file_exists) {
      return Error(Errc::io_error, wish.folder.string() + ": " + error.message());
    }
    return invalid(wish.folder.string() + " exists, and nothing is overwritten; give another folder");
  }
  auto filled = fill(wish);
  if (!filled) std::filesystem::remove_all(wish.folder, error);
  return filled;
}

int run_command(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 2), argv + argc);
  if (std::ranges::find(words, "--help") != words.end() || std::ranges::find(words, "-h") != words.end()) {
    std::fputs(("usage: caftan " + std::string(kUsage) + "\n").c_str(), stdout);
    return 0;
  }
  const auto wish = parse(words);
  const auto written = wish ? write(*wish) : Result<void>(wish.error());
  if (!written) {
    std::fputs(("error: " + written.error().text() + "\n").c_str(), stderr);
    return 2;
  }
  const std::string folder = wish->folder.string();
  const std::string& host = wish->hosts.front();
  std::fputs(("wrote " + folder +
              "/authority.pem, and a certificate and a key for each host. Copy to each host its own two "
              "files and the\nauthority, and name them in the file, as for " +
              host + ":\n    [tls]\n    certificate = \"" + folder + "/" + host + ".pem\"\n    key = \"" + folder +
              "/" + host + ".key\"\n    authority = \"" + folder + "/authority.pem\"\n")
                 .c_str(),
             stdout);
  return 0;
}

}  // namespace caftan::certs
