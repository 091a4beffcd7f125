// Workers of two processes of which one cannot read the other's memory, as under Yama: its peer's large tensors come
// through the ring, the other way they are lent, nothing is lost, and both say why, once (docs/protocols/bulk.md).
#include <ATen/ops/arange.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "caftan/actors/worker.hpp"
#include "caftan/tensor/operators.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "folder.hpp"
#include "refuse_reading.hpp"

namespace caftan::lending_refused_test {
namespace {

std::mutex log_mutex;
std::vector<std::string> log_lines;  // of this process's worker

at::Tensor plus_one(const at::Tensor& t) { return t + 1; }
std::string note_on(Worker& worker, const std::string& peer) { return worker.channel_note(peer); }
std::vector<std::string> lines_on(const std::string& word) {
  const std::lock_guard lock(log_mutex);
  std::vector<std::string> found;
  std::ranges::copy_if(log_lines, std::back_inserter(found),
                       [&](const std::string& line) { return line.find(word) != std::string::npos; });
  return found;
}

std::unique_ptr<Worker> launch(const std::string& name, const std::string& folder) {
  WorkerOptions options;
  options.name = name;
  options.world = {{"reader", "shm:" + folder + "/reader"}, {"blind", "shm:" + folder + "/blind"}};
  options.secret = "shared by this test";
  options.executor = std::make_shared<transport::ThreadedExecutor>(transport::ThreadedExecutor::Options{.runners = 1});
  options.log = [](std::string_view line) {
    const std::lock_guard lock(log_mutex);
    log_lines.emplace_back(line);
  };
  Registry registry;
  registry.add<&plus_one>("plus_one");
  registry.add<&note_on>("note_on");
  registry.add<&lines_on>("lines_on");
  return Worker::launch(std::move(options), std::move(registry)).value();
}

/// The process of worker "blind", until this object's end. Precondition: this process has one thread.
class Blind {
 public:
  explicit Blind(const std::string& folder) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return;
    id_ = ::fork();
    if (id_ == 0) {
      ::close(ends[1]);
      if (!test::refuse_reading(false)) ::_exit(1);
      const auto worker = launch("blind", folder);
      char byte = 0;
      const bool ready = worker->wait_until_ready().has_value();
      ::_exit(ready && ::read(ends[0], &byte, 1) == 0 ? 0 : 1);  // until the test lets go of the pipe
    }
    ::close(ends[0]);
    held_ = ends[1];
  }
  ~Blind() { EXPECT_EQ(end(), 0); }
  Blind(const Blind&) = delete;
  Blind& operator=(const Blind&) = delete;

 private:
  int end() const {
    ::close(held_);
    int status = -1;
    ::waitpid(id_, &status, 0);
    return status;
  }
  pid_t id_ = -1;
  int held_ = -1;
};

TEST(LendingRefused, BU1_BU3_LargeTensorsComeThroughTheRingWholeAndInOrderAndBothSidesSayWhyOnce) {
  const test::Folder folder;
  const Blind blind(folder.path());
  const auto reader = launch("reader", folder.path());
  ASSERT_TRUE(reader->wait_until_ready());
  const at::Tensor base = at::arange(256 * 1024);  // 2 MiB
  std::vector<Future<at::Tensor>> results;
  for (int i = 0; i < 20; ++i) results.push_back(reader->rpc_async<&plus_one>("blind", base + i));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(results[static_cast<std::size_t>(i)].get().equal(base + i + 1)) << i;

  EXPECT_EQ(reader->channel_kind("blind"), "shm");
  EXPECT_EQ(reader->channel_note("blind"),
            "large tensors to it go through the ring: it cannot read this process's memory");
  const std::string why = "large tensors from it go through the ring: process_vm_readv: Operation not permitted";
  EXPECT_EQ(reader->rpc_sync<&note_on>("blind", "reader").substr(0, why.size()), why);
  EXPECT_THAT(reader->rpc_sync<&lines_on>("blind", "large tensors"),
              ::testing::ElementsAre(::testing::StartsWith("channel to reader: " + why)));
  EXPECT_THAT(lines_on("large tensors"), ::testing::IsEmpty()) << "the side that cannot read writes it";
}

}  // namespace
}  // namespace caftan::lending_refused_test
