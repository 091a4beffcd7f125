/// A run of one process over threads, whose events a test reads.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "caftan/app/internal/load.hpp"
#include "caftan/caftan.hpp"
#include "role/worker_set.hpp"
#include "worker/runners.hpp"

namespace caftan::test {

/// A run of one process whose events are kept.
class OneProcessRun : public ::testing::Test {
 protected:
  /// Starts the run, waits until run() of `returned` roles has ended, then lets the workers leave. Returns whether all
  /// roles ended.
  /// @param act  called once the run has started
  bool run(const std::string& file, std::size_t returned, const std::function<void(actors::WorkerSet&)>& act = {}) {
    const auto types = program_.catalog().types().value();
    const auto loaded = app::parse_application(file, "/test.toml", {}, types, {});
    EXPECT_TRUE(loaded.diagnostics.ok()) << loaded.diagnostics.render(false);
    const app::Plan plan = app::make_plan(loaded.application);
    actors::WorkerSetOptions options{.catalog = program_.catalog(), .application = loaded.application, .plan = plan};
    for (const auto& worker : plan.workers) {
      options.workers.push_back(worker.id);
      options.members.push_back({worker.name, ""});
    }
    options.executor = actors::make_runners(options.workers.size());
    options.network = std::make_shared<LocalNetwork>();
    options.sink = [this](const run::Event& event) {
      const std::lock_guard lock(mutex_);
      // A worker that has reported ready has joined: it may be asked to leave at once.
      EXPECT_TRUE(!std::holds_alternative<run::Ready>(event.body) || workers_->has_joined());
      events_.push_back(event);
      changed_.notify_all();
    };
    actors::WorkerSet workers(std::move(options));
    workers_ = &workers;
    bool ended = false;
    std::thread life([&] { ended = workers.run(); });
    if (act) act(workers);
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return count<run::Returned>() + failures() >= returned; });
    }
    workers.leave();
    life.join();
    return ended;
  }
  /// Returns the events of one kind, in their order.
  template <class Body>
  std::vector<Body> all() const {
    std::vector<Body> found;
    for (const auto& event : events_) {
      if (const auto* body = std::get_if<Body>(&event.body)) found.push_back(*body);
    }
    return found;
  }
  template <class Body>
  std::size_t count() const {
    return all<Body>().size();
  }
  std::size_t failures() const { return count<run::Failed>(); }

  Program program_{"test"};
  const actors::WorkerSet* workers_ = nullptr;  // of the running run()
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<run::Event> events_;
};

}  // namespace caftan::test
