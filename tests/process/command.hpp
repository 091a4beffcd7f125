/// A command under test: started with its output in pipes, followed line by line, ended by signals. Waiting is always
/// for a condition, with a deadline that only a failing test reaches.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "folder.hpp"

namespace caftan::test {

using Seconds = std::chrono::seconds;
inline constexpr Seconds kPatience{120};  // a soak beside other work needs it

class Command {
 public:
  /// Starts `program` in `folder`. The test becomes the parent of all processes that the program leaves behind.
  Command(const Folder& folder, const std::string& program, const std::vector<std::string>& arguments);
  /// Kills all processes of the command that still run.
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// Reads until a line of standard output or error starts with `start`. Returns false when the command ended first.
  bool wait_for_line(const std::string& start);
  /// Reads the output until the command has ended. Returns the command's exit code, 128 + N if signal N ended it, -1 at
  /// the deadline.
  int wait();
  /// Returns whether no process of the run is left within `limit`. Precondition: wait() returned.
  bool nothing_is_left(std::chrono::milliseconds limit);
  /// Returns the process of a worker by its "ready" line; 0 if there was none.
  pid_t worker(const std::string& name) const;

  const std::string& out() const { return out_.text; }
  const std::string& err() const { return err_.text; }
  /// Returns the folder of the command's run, from the last line of its output; relative to the folder in which the
  /// command was started.
  std::string run_directory() const;

 private:
  struct Stream {
    int fd = -1;
    std::string text{};
  };
  bool read_some(std::chrono::steady_clock::time_point until);
  static bool has_line(const std::string& text, const std::string& start);

  pid_t pid_ = 0;
  int status_ = -1;
  Stream out_;
  Stream err_;
};

/// Runs a command to its end and returns its exit code.
struct Finished {
  int code = -1;
  std::string out{};
  std::string err{};
};
Finished run_to_end(const Folder& folder, const std::string& program, const std::vector<std::string>& arguments);

/// Returns whether every line of a metrics.csv has the columns of its heading and ends.
bool is_whole_csv(const std::string& text);

}  // namespace caftan::test
