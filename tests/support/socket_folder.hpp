/// A folder for Unix sockets, removed at the end.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace caftan::test {

class SocketFolder {
 public:
  SocketFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "caftan-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~SocketFolder() { std::filesystem::remove_all(path_); }
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace caftan::test
