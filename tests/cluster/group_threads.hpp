/// Workers of one process over threads, for groups of them: a backend may have threads of its own, so time is real
/// here.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "caftan/caftan.hpp"
#include "caftan/collectives/collectives.hpp"
#include "caftan/transport/threaded_executor.hpp"

namespace caftan::test {

using Group = std::shared_ptr<collectives::Collectives>;

inline std::vector<std::string> names_of(int count) {
  std::vector<std::string> names;
  for (int rank = 0; rank < count; ++rank) names.push_back("w" + std::to_string(rank));
  return names;
}

/// The first `members` workers have ranks, and code that runs on threads of its own, as in a user's program.
class GroupThreads {
 public:
  /// @param others  names of workers beside the members
  explicit GroupThreads(int members, const std::vector<std::string>& others = {}, const Registry& registry = {})
      : names_(names_of(members)) {
    std::vector<std::string> all = names_;
    all.insert(all.end(), others.begin(), others.end());
    const auto executor = std::make_shared<transport::ThreadedExecutor>(
        transport::ThreadedExecutor::Options{.runners = 2, .max_threads = 32});
    const auto network = std::make_shared<LocalNetwork>();
    for (const std::string& name : all) {
      WorkerOptions options;
      options.name = name;
      for (const std::string& member : all) options.world.push_back({member, ""});
      options.executor = executor;
      options.network = network;
      workers_.push_back(Worker::launch(std::move(options), registry).value());
    }
    for (const auto& worker : workers_) worker->wait_until_ready().value();
  }

  /// Members first, then the others.
  Worker& operator[](int index) { return *workers_[static_cast<std::size_t>(index)]; }
  int size() const { return static_cast<int>(names_.size()); }
  const std::vector<std::string>& names() const { return names_; }
  void stop(int index) { (void)workers_[static_cast<std::size_t>(index)]->stop(); }

  /// Runs `code` for each rank at the same time.
  void each(const std::function<void(int rank)>& code) const {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size(); ++rank) threads.emplace_back(code, rank);
    for (std::thread& thread : threads) thread.join();
  }
  /// Makes a group of all members.
  std::vector<Group> join(collectives::Backend backend = collectives::Backend::caftan,
                          const std::string& name = "group") {
    std::vector<Group> groups(names_.size());
    each([&](int rank) {
      auto joined = collectives::join_group((*this)[rank], {.name = name, .members = names_, .backend = backend});
      ASSERT_TRUE(joined) << joined.error().message();
      groups[static_cast<std::size_t>(rank)] = *joined;
    });
    return groups;
  }

 private:
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace caftan::test
