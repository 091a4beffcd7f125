/// What lists of processes show of this process.
#pragma once

#include <cstddef>
#include <string>

namespace caftan::actors {

/// The memory of this process's command line. Threads: one.
class ProcessTitle {
 public:
  /// @param argv  of main
  ProcessTitle(int argc, char** argv);
  /// Shows `title` behind the name of the program, in place of the other words, cut where it is longer than these; and
  /// `name` as the name of the calling thread, of which the system keeps 15 bytes. The words of argv are gone then.
  void set(const std::string& title, const std::string& name) const;

 private:
  char* const begin_;
  std::size_t size_ = 0;
};

}  // namespace caftan::actors
