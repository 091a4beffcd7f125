/// A file that is only written to: each write reaches the kernel before it returns.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "caftan/base/result.hpp"

namespace caftan::app {

class File {
 public:
  /// Makes a new file; an existing one is an error. Errors: io_error.
  static Result<File> create(const std::filesystem::path& path);

  File(File&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)), size_(other.size_) {}
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(path_, other.path_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~File();

  /// Appends all of `text` or nothing of it. Errors: io_error.
  Result<void> write(std::string_view text);
  /// Returns once the disk has all that was written. Errors: io_error.
  Result<void> sync();

 private:
  File(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  int descriptor_ = -1;
  std::string path_;
  off_t size_ = 0;
};

}  // namespace caftan::app
