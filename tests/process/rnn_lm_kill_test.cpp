// The language model when one of its processes is killed: the launcher names the process, and a resumed run continues
// from the last checkpoint bit for bit, even if the process was killed while a checkpoint was being written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "command.hpp"
#include "rnn_lm_runs.hpp"

namespace caftan::test::rnn_lm_kill_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;

/// Waits for what appears in a folder of checkpoints.
class CheckpointWatch {
 public:
  explicit CheckpointWatch(std::filesystem::path folder)
      : folder_(std::move(folder)), fd_(::inotify_init1(IN_CLOEXEC)), all_(watch(folder_)) {}
  ~CheckpointWatch() { ::close(fd_); }
  CheckpointWatch(const CheckpointWatch&) = delete;
  CheckpointWatch& operator=(const CheckpointWatch&) = delete;

  /// Returns when the next checkpoint has begun and `files` names have appeared in its folder, or when it has ended
  /// sooner. Returns false if none begins.
  bool wait_for_next(int files) {
    int one = -1;
    for (;;) {
      pollfd waited{fd_, POLLIN, 0};
      if (::poll(&waited, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count())) != 1) return false;
      alignas(inotify_event) std::array<char, 4096> bytes{};
      const ssize_t size = ::read(fd_, bytes.data(), bytes.size());
      for (ssize_t at = 0; at < size;) {
        const auto* const event = reinterpret_cast<const inotify_event*>(bytes.data() + at);
        at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
        if (event->wd == all_ && one >= 0) return true;
        if (event->wd == all_) one = watch(folder_ / event->name);
        if (event->wd == one) --files;
      }
      if (one >= 0 && files <= 0) return true;
    }
  }

 private:
  int watch(const std::filesystem::path& path) const {
    return ::inotify_add_watch(fd_, path.c_str(), IN_CREATE | IN_MOVED_TO);
  }

  const std::filesystem::path folder_;
  const int fd_;
  const int all_;
};

class KilledLanguageModel : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const Folder folder;
    const Finished whole = run_to_end(folder, kCaftan, run_file());
    ASSERT_EQ(whole.code, 0) << whole.err;
    whole_ = whole.out;
    curve_ = folder.read("runs/latest/curve.csv");
  }

  /// Starts a run that does not end, and waits for its first checkpoint.
  void start() {
    command_.emplace(folder_, kCaftan, run_file({"roles.trainer.config.max_steps=100000"}));
    ASSERT_TRUE(command_->wait_for_line("checkpoint: step 20 ")) << command_->err();
    const std::string named = line_with(command_->out(), "checkpoint: step 20 ");
    first_ = folder_.path() / named.substr(named.find(" in ") + 4);
  }
  void kill(const std::string& victim) {
    const pid_t pid = victim == "launcher" ? command_->pid() : command_->worker(victim);
    ASSERT_GT(pid, 0);
    ::kill(pid, SIGKILL);
    EXPECT_EQ(command_->wait(), victim == "launcher" ? 128 + SIGKILL : 1);
    EXPECT_TRUE(command_->nothing_is_left(2s));
    if (victim == "launcher") return;
    EXPECT_THAT(command_->err(),
                HasSubstr("error: " + victim + " (pid " + std::to_string(pid) + ") was killed by signal 9"));
  }
  void expect_resume(const std::string& said) {
    const std::string run = first_.parent_path().parent_path().string();
    const Finished resumed = run_to_end(folder_, kCaftan, run_file({"roles.trainer.config.resume=" + run}));
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_THAT(resumed.out, ContainsRegex(said));
    EXPECT_EQ(line_with(resumed.out, "fingerprint sha256:"), line_with(whole_, "fingerprint sha256:"));
    EXPECT_EQ(line_with(resumed.out, "sample:"), line_with(whole_, "sample:"));
    const std::string rest = folder_.read("runs/latest/curve.csv");
    EXPECT_THAT(curve_, EndsWith(rest.substr(rest.find('\n') + 1)));
  }

  Folder folder_;
  std::optional<Command> command_;
  std::filesystem::path first_;
  inline static std::string whole_;
  inline static std::string curve_;
};

class KilledTraining : public KilledLanguageModel, public ::testing::WithParamInterface<std::string> {};
INSTANTIATE_TEST_SUITE_P(Victims, KilledTraining, ::testing::Values("trainer", "ps", "launcher"));

TEST_P(KilledTraining, ResumesBitForBit) {
  start();
  kill(GetParam());
  // The checkpoints that the run wrote after the first one are deleted, so that each victim's run resumes at the same
  // step.
  for (const auto& entry : std::filesystem::directory_iterator(first_.parent_path())) {
    if (entry.path() != first_) std::filesystem::remove_all(entry.path());
  }
  expect_resume("resumed: step 20 of ");
  // The heading, 40 steps, and four values of the validations after 40 and 60 steps.
  EXPECT_EQ(std::ranges::count(folder_.read("runs/latest/curve.csv"), '\n'), 1 + 40 + 2 * 4);
}

struct MidCheckpoint {
  std::string name;
  std::string victim;
  int files;  // how many names have appeared in the checkpoint: two for each file, first its temporary name
};
class KilledInACheckpoint : public KilledLanguageModel, public ::testing::WithParamInterface<MidCheckpoint> {};
INSTANTIATE_TEST_SUITE_P(Moments, KilledInACheckpoint,
                         ::testing::Values(MidCheckpoint{"TheTrainerAtItsBegin", "trainer", 0},
                                           MidCheckpoint{"TheTrainerAmongParts", "trainer", 5},
                                           MidCheckpoint{"TheTrainerBeforeTheManifestStands", "trainer", 9},
                                           MidCheckpoint{"TheServer", "ps", 1}),
                         [](const auto& info) { return info.param.name; });

TEST_P(KilledInACheckpoint, TheLastWholeOneIsGoneOnFrom) {
  start();
  CheckpointWatch watch(first_.parent_path());
  ASSERT_TRUE(watch.wait_for_next(GetParam().files)) << command_->err();
  kill(GetParam().victim);
  expect_resume("resumed: step [0-9]+ of ");
}

}  // namespace
}  // namespace caftan::test::rnn_lm_kill_test
