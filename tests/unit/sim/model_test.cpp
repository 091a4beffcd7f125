// Random models and partitions through both rules, in random orders of frames, against a naive sequential loop: the
// same events in the same order at each process, and the same hashes (SM-1, SM-4, SM-6 to SM-9, SM-12, SM-14, SM-15,
// SM-18).
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "caftan/sim/internal/grant_rule.hpp"
#include "caftan/sim/internal/partition.hpp"
#include "caftan/sim/sequential.hpp"
#include "random_model.hpp"
#include "soak_size.hpp"

namespace caftan::sim::model_test {
namespace {

using sim::test::make_shape;
using sim::test::Naive;
using sim::test::Process;
using sim::test::Shape;

/// How a run is cut up.
struct Cuts {
  std::uint32_t partitions = 1;
  Sync sync = Sync::window;
  bool has_borders = false;       // at random times
  bool has_checkpoints = false;   // at borders, into other numbers of partitions
  bool loses_partitions = false;  // now and then all is lost, and the run goes on from its last checkpoint
};

/// A checkpoint of all partitions.
struct Saved {
  Time border{};
  std::vector<wire::CheckpointFile> files{};
};

/// Partitions, with a lane for each direction, and a clock. Frames are delivered in an order that `random` chooses.
class Job final {
 public:
  Job(const Shape& shape, const Cuts& cuts, std::uint64_t seed) : shape_(shape), cuts_(cuts), random_(seed) {
    open({});
  }

  /// Runs to the end. Returns the first error.
  Result<void> run() {
    while (true) {
      const std::optional<sim::Grant> natural = rule_->next({});
      if (!natural) return {};
      sim::Grant grant = *natural;
      if (cuts_.has_borders) grant.border = std::min(grant.border, Time{rule_->border().ticks + 1 + below(20)});
      rule_->on_granted(grant);
      if (auto done = advance_all(grant.border); !done) return done;
      if (auto done = report_all(); !done) return done;
      if (rule_->is_over()) return {};
      if (cuts_.has_checkpoints && below(3) == 0) {
        if (auto done = save(); !done) return done;
      }
      if (cuts_.loses_partitions && below(4) == 0) open(saved_);
      if (auto done = failure_; done) return *done;
    }
  }

  std::vector<std::uint64_t> hashes() const {
    std::vector<std::uint64_t> all;
    for (const auto& partition : partitions_) {
      const auto own = partition->kernel().hashes().value();
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }
  const BorderReport& sums() const { return rule_->sums(); }
  std::uint64_t frames() const { return frames_; }

 private:
  struct Lanes final : FrameSink {
    Lanes(Job& job, std::uint32_t from) : job(job), from(from) {}
    void send(std::uint32_t partition, wire::Bytes frame) override {
      job.lanes_[from][partition].push_back(std::move(frame));
    }
    Job& job;
    std::uint32_t from;
  };
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }

  /// Begins the run, or goes on from `saved` with another number of partitions.
  void open(const std::optional<Saved>& saved) {
    const auto partitions = saved ? static_cast<std::uint32_t>(1 + below(5)) : cuts_.partitions;
    partitions_.clear();
    sinks_.clear();
    lanes_.assign(partitions, std::vector<std::deque<wire::Bytes>>(partitions));
    const double end = Time{shape_.end}.units();
    rule_ = std::make_unique<GrantRule>(
        GrantRule::make({.end_time = end}, partitions, saved ? saved->border : Time{}).value());
    for (std::uint32_t i = 0; i < partitions; ++i) {
      auto kernel =
          make_kernel([this](Builder& builder) { build(builder, shape_); }, {.seed = shape_.seed}, i, partitions);
      sinks_.push_back(std::make_unique<Lanes>(*this, i));
      partitions_.push_back(std::make_unique<Partition>(7, std::move(kernel).value(), cuts_.sync, *sinks_.back()));
    }
    for (const auto& partition : partitions_) {
      if (!saved) {
        note(partition->start());
        continue;
      }
      for (const wire::CheckpointFile& file : saved->files) note(partition->kernel().load(file));
      note(partition->resume());
    }
  }

  Result<void> save() {
    Saved saved{rule_->border(), {}};
    for (const auto& partition : partitions_) {
      auto file = partition->kernel().save();
      if (!file) return file.error();
      // As a file has it.
      const wire::Bytes bytes = wire::encode_checkpoint(*file).value();
      saved.files.push_back(wire::decode_checkpoint(bytes, "caftan.sim.partition").value());
    }
    saved_ = std::move(saved);
    return {};
  }

  void note(Result<void> done) {
    if (!done && !failure_) failure_ = done;
  }

  /// Grants the border to each partition at a random moment among the frames, until none is left.
  Result<void> advance_all(Time border) {
    std::vector<std::uint32_t> not_granted;
    for (std::uint32_t i = 0; i < partitions_.size(); ++i) not_granted.push_back(i);
    while (true) {
      std::vector<std::pair<std::uint32_t, std::uint32_t>> full;
      for (std::uint32_t from = 0; from < lanes_.size(); ++from) {
        for (std::uint32_t to = 0; to < lanes_.size(); ++to) {
          if (!lanes_[from][to].empty()) full.emplace_back(from, to);
        }
      }
      const auto choices = static_cast<std::int64_t>(full.size() + not_granted.size());
      if (choices == 0) return {};
      const auto choice = static_cast<std::size_t>(below(choices));
      if (choice < full.size()) {
        const auto [from, to] = full[choice];
        const wire::Bytes frame = std::move(lanes_[from][to].front());
        lanes_[from][to].pop_front();
        ++frames_;
        if (auto done = partitions_[to]->on_frame(frame); !done) return done;
        if (auto done = partitions_[to]->advance(); !done) return done;
      } else {
        const auto at = not_granted.begin() + static_cast<std::ptrdiff_t>(choice - full.size());
        const std::uint32_t to = *at;
        not_granted.erase(at);
        if (auto done = partitions_[to]->grant(border); !done) return done;
        if (auto done = partitions_[to]->advance(); !done) return done;
      }
    }
  }

  Result<void> report_all() {
    for (std::uint32_t i = 0; i < partitions_.size(); ++i) {
      if (!partitions_[i]->is_at_border())
        return Error(Errc::timeout, "partition " + std::to_string(i) + " waits for ever");
      if (!partitions_[i]->waits_for().empty()) return Error(Errc::timeout, "a partition waits at a border");
      if (auto done = rule_->on_report(i, partitions_[i]->report()); !done) return done;
    }
    return {};
  }

  const Shape& shape_;
  Cuts cuts_;
  std::mt19937_64 random_;
  std::unique_ptr<GrantRule> rule_;
  std::vector<std::unique_ptr<Lanes>> sinks_;
  std::vector<std::unique_ptr<Partition>> partitions_;
  std::vector<std::vector<std::deque<wire::Bytes>>> lanes_;  // from, to
  std::optional<Saved> saved_;
  std::optional<Result<void>> failure_;
  std::uint64_t frames_ = 0;
};

/// A kernel with all processes, and what its processes have seen.
struct Alone {
  explicit Alone(const Shape& shape) {
    auto made = make_kernel([&](Builder& builder) { build(builder, shape); }, {.seed = shape.seed});
    kernel = std::move(made).value();
    kernel->start().value();
    kernel->run_until(Time{shape.end}).value();
  }
  std::vector<std::uint64_t> log(std::uint32_t id) const {
    // The state of a process as its checkpoint has it: sequence, draws, hash, then its bytes.
    const auto file = kernel->save().value();
    wire::InArchive archive(file.find("processes").value());
    for (std::uint32_t at = 0;; ++at) {
      std::uint64_t skipped = 0;
      archive >> skipped >> skipped >> skipped;
      const wire::ByteView state = archive.take(archive.load_count());
      if (at < id) continue;
      Process process;
      wire::decode_into(state, process).value();
      return process.seen.log;
    }
  }
  std::unique_ptr<Kernel> kernel;
};

/// Compares random models with the naive loop. Returns how many differ.
void compare(std::size_t models, const std::function<Cuts(std::mt19937_64&)>& cuts_of, std::uint64_t first_seed) {
  std::uint64_t handled = 0;
  std::uint64_t frames = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + models; ++seed) {
    const Shape shape = make_shape(seed);
    const Naive naive(shape);
    const Alone alone(shape);
    ASSERT_EQ(alone.kernel->counters().handled, naive.handled()) << "model " << seed;
    ASSERT_EQ(alone.kernel->pending(), naive.pending()) << "model " << seed;
    for (std::uint32_t id = 0; id < shape.groups.size(); ++id)
      ASSERT_EQ(alone.log(id), naive.log(id)) << "model " << seed;
    std::mt19937_64 random(seed * 7919 + 1);
    const Cuts cuts = cuts_of(random);
    Job job(shape, cuts, seed);
    const Result<void> done = job.run();
    ASSERT_TRUE(done.has_value()) << "model " << seed << ": " << done;
    ASSERT_EQ(job.hashes(), alone.kernel->hashes().value())
        << "model " << seed << " on " << cuts.partitions << " partitions";
    ASSERT_EQ(job.sums().counters.handled, naive.handled()) << "model " << seed;
    ASSERT_EQ(job.sums().pending, naive.pending()) << "model " << seed;
    handled += naive.handled();
    frames += job.frames();
  }
  EXPECT_GT(handled, models * 20);  // the models do something
  EXPECT_GT(frames, models);
}

Cuts some_cuts(std::mt19937_64& random, Sync sync) {
  return {.partitions = static_cast<std::uint32_t>(1 + random() % 5), .sync = sync};
}

std::size_t models() { return caftan::test::soak_size("CAFTAN_SIM_MODELS", 300); }

TEST(SimModel, SM6_WindowsGiveTheOrderOfTheSequentialLoop) {
  compare(
      models(), [](std::mt19937_64& random) { return some_cuts(random, Sync::window); }, 1);
}

TEST(SimModel, SM7_PromisesGiveTheOrderOfTheSequentialLoop) {
  compare(
      models(), [](std::mt19937_64& random) { return some_cuts(random, Sync::null_message); }, 1);
}

TEST(SimModel, SM9_BordersChangeNothing) {
  for (const Sync sync : {Sync::window, Sync::null_message}) {
    compare(
        models() / 2,
        [sync](std::mt19937_64& random) {
          Cuts cuts = some_cuts(random, sync);
          cuts.has_borders = true;
          return cuts;
        },
        100'000);
  }
}

TEST(SimModel, SM15_CheckpointsGoIntoOtherNumbersOfPartitions) {
  for (const Sync sync : {Sync::window, Sync::null_message}) {
    compare(
        models() / 2,
        [sync](std::mt19937_64& random) {
          Cuts cuts = some_cuts(random, sync);
          cuts.has_borders = cuts.has_checkpoints = cuts.loses_partitions = true;
          return cuts;
        },
        200'000);
  }
}

}  // namespace
}  // namespace caftan::sim::model_test
