#include "simulated_workers.hpp"

#include <ATen/SequenceNumber.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <thread>
#include <utility>

#include "caftan/tensor/codec.hpp"

namespace caftan::autograd::test {
namespace {

std::vector<tensor::DecodedTensor> travel(std::span<const at::Tensor> tensors, std::span<const std::uint8_t> recorded) {
  static constexpr tensor::TensorLayout::Limits kLimits{.max_bytes = 1 << 20, .max_tensors = 1024};
  const Result<tensor::EncodedTensors> encoded = tensor::encode_tensors(tensors, recorded);
  EXPECT_TRUE(encoded) << encoded.error().message();
  const Result<tensor::TensorLayout> layout = tensor::TensorLayout::parse(encoded->table, kLimits);
  EXPECT_TRUE(layout) << layout.error().message();
  wire::BlockPool pool;
  std::vector<wire::Block> blocks;
  for (const wire::Segment& segment : encoded->segments) {
    blocks.push_back(std::move(pool.take(segment.size).value()));
    std::memcpy(blocks.back().data(), segment.data, segment.size);
  }
  Result<std::vector<tensor::DecodedTensor>> built = layout->build(std::move(blocks));
  EXPECT_TRUE(built) << built.error().message();
  return *std::move(built);
}

}  // namespace

SimulatedWorkers::SimulatedWorkers(int workers, Threads threads, std::uint64_t schedule)
    : threads_(threads), schedule_(schedule), spans_(workers) {
  for (auto& spans : spans_) {
    CodeSpan span = CodeSpan::begin(0);
    if (threads_ != Threads::one_span) span.end();  // an empty span: what is recorded next is in none
    spans.push_back(span);
  }
}

void SimulatedWorkers::run_span(int worker, std::uint64_t key, const std::function<void()>& code) {
  const auto record = [&] {
    for (std::uint64_t n = schedule_() % 50; n > 0; --n) at::sequence_number::get_and_increment();
    CodeSpan span = CodeSpan::begin(key);
    code();
    span.end();
    if (threads_ == Threads::one_thread || threads_ == Threads::many_threads) spans_[worker].push_back(span);
  };
  const bool here = threads_ == Threads::one_span || threads_ == Threads::one_thread || schedule_() % 3 == 0;
  if (here) {
    record();
  } else {
    std::thread(record).join();
  }
}

std::vector<at::Tensor> SimulatedWorkers::move(int from, int to, const std::vector<at::Tensor>& tensors,
                                               std::uint64_t order_key) {
  RecordedMessage recorded;
  recorded.message.number = messages_.size() + 1;
  recorded.order_key = order_key;
  recorded.peer.value = static_cast<std::uint32_t>(to);
  std::vector<std::uint8_t> bits;
  const std::shared_ptr<SendFunction> send = record_sent(recorded, tensors, bits);
  const std::vector<tensor::DecodedTensor> arrived = travel(tensors, bits);
  std::vector<at::Tensor> came;
  for (const tensor::DecodedTensor& tensor : arrived) came.push_back(tensor.tensor);
  recorded.peer.value = static_cast<std::uint32_t>(from);
  const Result<std::shared_ptr<RecvFunction>> received = record_received(recorded, came, bits);
  EXPECT_TRUE(received) << received.error().message();
  EXPECT_EQ(send == nullptr, *received == nullptr);
  if (send) messages_.push_back({send, from, to});
  return came;
}

/// One pass: the workers' engines, and the messages that are under way between them.
class SimulatedPass {
 public:
  SimulatedPass(SimulatedWorkers& workers, std::uint64_t seed, bool keep_graph)
      : workers_(workers), random_(seed), keep_graph_(keep_graph), parts_(workers.spans_.size()) {
    for (std::size_t worker = 0; worker < parts_.size(); ++worker) parts_[worker].pass = this;
  }

  SimulatedWorkers::Outcome run(const std::vector<at::Tensor>& roots) {
    Part& initiator = part(0);
    const Result<void> added = initiator.engine->add_roots(roots);
    EXPECT_TRUE(added) << added.error().message();
    initiator.to_walk = true;
    ways_[0] = {0};
    mark();
    initiator.to_run = true;
    cascade();
    SimulatedWorkers::Outcome outcome;
    outcome.marked = marked_.size();
    outcome.unused = workers_.messages_.size() - marked_.size();
    outcome.reentries = reentries_;
    outcome.early = early_;
    for (Part& each : parts_) {
      EXPECT_TRUE(!each.engine || each.drained) << "a worker waits for ever";
      outcome.books.push_back(each.engine ? each.engine->take_staged() : GradientBook());
    }
    EXPECT_EQ(given_, marked_) << "DA-6: each marked message gets one gradient message, no other does";
    return outcome;
  }

 private:
  struct Part final : GradientSink {
    SimulatedPass* pass = nullptr;
    std::unique_ptr<Engine> engine;
    bool to_walk = false;
    bool to_run = false;
    bool drained = false;
    void on_gradients(const RecordedMessage& message, std::vector<at::Tensor>&& gradients) override {
      EXPECT_TRUE(pass->given_.insert(message.message.number).second) << "DA-6: a second gradient message";
      pass->gradients_.emplace_back(message.message.number, std::move(gradients));
    }
  };

  std::size_t draw(std::size_t below) { return random_() % below; }

  Part& part(int worker) {
    Part& one = parts_[worker];
    if (!one.engine) {
      Result<std::unique_ptr<Engine>> begun = Engine::begin({.context = {}, .keep_graph = keep_graph_});
      EXPECT_TRUE(begun);
      one.engine = *std::move(begun);
      // Their order must not matter.
      std::vector<CodeSpan> spans = workers_.spans_[worker];
      std::shuffle(spans.begin(), spans.end(), random_);
      one.engine->add_spans(std::move(spans));
    }
    return one;
  }

  const SimulatedWorkers::Message& message(std::uint64_t number) const { return workers_.messages_[number - 1]; }

  /// DA-4: all marks and walks first, in any order.
  void mark() {
    for (;;) {
      std::vector<int> walkers;
      for (std::size_t i = 0; i < parts_.size(); ++i) {
        if (parts_[i].to_walk) walkers.push_back(static_cast<int>(i));
      }
      if (walkers.empty() && marks_.empty()) return;
      const std::size_t event = draw(walkers.size() + marks_.size());
      if (event < walkers.size()) {
        walk(walkers[event]);
      } else {
        std::swap(marks_[event - walkers.size()], marks_.back());
        const std::uint64_t number = marks_.back();
        marks_.pop_back();
        Part& sender = part(message(number).from);
        const Result<void> done = sender.engine->mark(message(number).send);
        EXPECT_TRUE(done) << done.error().message();
        sender.to_walk = true;
      }
    }
  }

  void walk(int worker) {
    Part& walker = parts_[worker];
    const Engine::WalkSlice slice = walker.engine->walk(1 + draw(30));
    walker.to_walk = !slice.done;
    for (const RecordedMessage& found : slice.found) {
      const std::uint64_t number = found.message.number;
      EXPECT_TRUE(marked_.insert(number).second) << "DA-5: found twice";
      marks_.push_back(number);
      // One way over the workers by which the message was found; there may be others.
      std::set<int> way = ways_[worker];
      if (!way.insert(message(number).from).second) ++reentries_;
      ways_[message(number).from].merge(way);
    }
  }

  void cascade() {
    for (;;) {
      std::vector<int> runners;
      for (std::size_t i = 0; i < parts_.size(); ++i) {
        if (parts_[i].to_run) runners.push_back(static_cast<int>(i));
      }
      if (runners.empty() && gradients_.empty()) return;
      const std::size_t event = draw(runners.size() + gradients_.size());
      if (event < runners.size()) {
        Part& runner = parts_[runners[event]];
        const Result<Engine::RunSlice> ran = runner.engine->run(1 + draw(20), runner);
        ASSERT_TRUE(ran) << ran.error().message();
        runner.to_run = !ran->idle;
        runner.drained = ran->drained;
      } else {
        early_ += event > runners.size() ? 1 : 0;
        std::swap(gradients_[event - runners.size()], gradients_.back());
        auto [number, gradients] = std::move(gradients_.back());
        gradients_.pop_back();
        std::vector<at::Tensor> came;
        for (tensor::DecodedTensor& tensor : travel(gradients, {})) came.push_back(std::move(tensor.tensor));
        Part& sender = parts_[message(number).from];
        const Result<void> fed = sender.engine->feed(message(number).send->message().message, std::move(came));
        ASSERT_TRUE(fed) << fed.error().message();
        sender.to_run = true;
      }
    }
  }

  SimulatedWorkers& workers_;
  std::mt19937_64 random_;
  const bool keep_graph_;
  std::vector<Part> parts_;
  std::vector<std::uint64_t> marks_;
  std::vector<std::pair<std::uint64_t, std::vector<at::Tensor>>> gradients_;
  std::set<std::uint64_t> marked_;
  std::set<std::uint64_t> given_;
  std::unordered_map<int, std::set<int>> ways_;
  std::size_t reentries_ = 0;
  std::size_t early_ = 0;
};

SimulatedWorkers::Outcome SimulatedWorkers::backward(const std::vector<at::Tensor>& roots, std::uint64_t seed,
                                                     bool keep_graph) {
  return SimulatedPass(*this, seed, keep_graph).run(roots);
}

}  // namespace caftan::autograd::test
