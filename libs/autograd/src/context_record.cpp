#include "caftan/autograd/internal/context_record.hpp"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "caftan/autograd/internal/context_host.hpp"
#include "caftan/tensor/internal/torch_errors.hpp"
#include "released_context.hpp"

namespace caftan::autograd {

// ---- use

Result<void> ContextRecord::begin_use(unsigned depth) {
  const base::LockGuard lock(mutex_);
  if (phase_ == Phase::over) return released_context(id_);
  if (phase_ == Phase::closing && !(depth > depth_ && uses_ > 0)) return released_context(id_);
  ++uses_;
  return {};
}

void ContextRecord::end_use() noexcept {
  bool last = false;
  {
    const base::LockGuard lock(mutex_);
    last = --uses_ == 0 && phase_ == Phase::closing;
  }
  if (!last) return;
  if (const auto alive = caller_.lock()) host_.release(id_);
}

void ContextRecord::close() noexcept {
  bool last = false;
  {
    const base::LockGuard lock(mutex_);
    if (phase_ != Phase::open) return;
    phase_ = Phase::closing;
    last = uses_ == 0;
  }
  if (!last) return;
  if (const auto alive = caller_.lock()) host_.release(id_);
}

void ContextRecord::end() noexcept {
  // Graphs and gradients are destroyed outside of the lock: that may take long, and may end a handle of another
  // context.
  std::unordered_map<std::uint64_t, Sent> sent;
  HeldGradients gradients;
  std::vector<std::function<void()>> when_over;
  {
    const base::LockGuard lock(mutex_);
    phase_ = Phase::over;
    sent.swap(sent_);
    std::swap(gradients, gradients_);
    when_over.swap(when_over_);
    recorded_bytes_ = 0;
  }
  for (const auto& over : when_over) over();
}

void ContextRecord::when_over(std::function<void()> over) {
  {
    const base::LockGuard lock(mutex_);
    if (phase_ != Phase::over) {
      when_over_.push_back(std::move(over));
      return;
    }
  }
  over();
}

bool ContextRecord::is_over() const {
  const base::LockGuard lock(mutex_);
  return phase_ == Phase::over;
}

// ---- recording

Result<AutogradMessageId> ContextRecord::next_message() {
  const std::uint64_t number = next_message_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (number >> kMessageBits != 0) {
    return Error(Errc::limit_exceeded, "autograd context " + to_string(id_) + " has recorded " +
                                           std::to_string(number - 1) + " messages from here, which is the most");
  }
  return AutogradMessageId{self_.id, self_.incarnation, (place_ << kMessageBits) | number};
}

Result<void> ContextRecord::add_sent(std::shared_ptr<SendFunction> function, WorkerLife to, std::uint64_t bytes) {
  auto strand = rpc::Strand::held_here();
  const std::uint64_t number = function->message().message.number;
  const base::LockGuard lock(mutex_);
  if (phase_ == Phase::over) return released_context(id_);
  sent_.emplace(number, Sent{std::move(function), to, std::move(strand), bytes});
  recorded_bytes_ += bytes;
  return {};
}

void ContextRecord::forget_sent(AutogradMessageId message) noexcept {
  decltype(sent_)::node_type node;
  const base::LockGuard lock(mutex_);
  node = sent_.extract(message.number);
  if (node) recorded_bytes_ -= node.mapped().bytes;
}

Result<void> ContextRecord::add_received(WorkerLife from, std::uint64_t bytes) {
  const base::LockGuard lock(mutex_);
  if (phase_ == Phase::over) return released_context(id_);
  ++received_;
  recorded_bytes_ += bytes;
  met_.insert(from.id);
  return {};
}

std::uint64_t ContextRecord::next_binding() noexcept {
  constexpr std::uint64_t kBindings = 0x2545f4914f6cdd1dULL;  // a start far from the keys of calls, which count from 0
  return mix64(kBindings + next_binding_.fetch_add(1, std::memory_order_relaxed));
}

void ContextRecord::begin_span(std::uint64_t key) {
  const base::LockGuard lock(mutex_);
  spans_.insert_or_assign(key, CodeSpan::begin(key));
}

void ContextRecord::end_span(std::uint64_t key) {
  const base::LockGuard lock(mutex_);
  const auto span = spans_.find(key);
  if (span == spans_.end()) return;
  span->second.end();
  if (span->second.first == span->second.last) spans_.erase(span);
}

std::vector<CodeSpan> ContextRecord::spans() const {
  std::vector<CodeSpan> spans;
  const base::LockGuard lock(mutex_);
  spans.reserve(spans_.size());
  for (const auto& [key, span] : spans_) spans.push_back(span);
  return spans;
}

Result<void> ContextRecord::add_exchange(std::shared_ptr<LeafExchange> exchange) {
  const base::LockGuard lock(mutex_);
  if (phase_ == Phase::over) return released_context(id_);
  auto& known = gradients_.exchanges;
  if (std::find(known.begin(), known.end(), exchange) == known.end()) known.push_back(std::move(exchange));
  return {};
}

std::vector<std::shared_ptr<LeafExchange>> ContextRecord::exchanges() const {
  const base::LockGuard lock(mutex_);
  return gradients_.exchanges;
}

void ContextRecord::met(WorkerId worker) {
  const base::LockGuard lock(mutex_);
  met_.insert(worker);
}

// ---- passes

std::optional<WorkerLife> ContextRecord::receiver_of(AutogradMessageId message) const {
  if (message.maker() != self_) return std::nullopt;
  const base::LockGuard lock(mutex_);
  const auto found = sent_.find(message.number);
  if (found == sent_.end()) return std::nullopt;
  return found->second.to;
}

std::vector<AutogradMessageId> ContextRecord::sends() const {
  std::vector<AutogradMessageId> messages;
  const base::LockGuard lock(mutex_);
  messages.reserve(sent_.size());
  for (const auto& [number, sent] : sent_) messages.push_back({self_.id, self_.incarnation, number});
  return messages;
}

std::shared_ptr<const SendFunction> ContextRecord::send_function(AutogradMessageId message) const {
  const base::LockGuard lock(mutex_);
  const auto found = sent_.find(message.number);
  return found == sent_.end() ? nullptr : found->second.function;
}

std::vector<std::shared_ptr<rpc::Strand>> ContextRecord::strands_of(const std::vector<AutogradMessageId>& messages,
                                                                    const std::shared_ptr<rpc::Strand>& first) const {
  std::vector<std::shared_ptr<rpc::Strand>> strands;
  if (first) strands.push_back(first);
  {
    const base::LockGuard lock(mutex_);
    for (const AutogradMessageId& message : messages) {
      const auto found = sent_.find(message.number);
      if (found != sent_.end() && found->second.strand) strands.push_back(found->second.strand);
    }
  }
  const auto key = [](const std::shared_ptr<rpc::Strand>& s) { return std::make_pair(s->object(), s.get()); };
  std::sort(strands.begin(), strands.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  strands.erase(std::unique(strands.begin(), strands.end()), strands.end());
  return strands;
}

void ContextRecord::deliver(PassNumber pass, const AutogradMessageId& message,
                            Result<std::vector<at::Tensor>> gradients) {
  const base::LockGuard lock(mutex_);
  if (phase_ == Phase::over) return;
  gradients_.delivered.try_emplace({pass, message}, std::move(gradients));
}

Result<std::vector<at::Tensor>> ContextRecord::take_delivered(PassNumber pass, const AutogradMessageId& message) {
  HeldGradients::Delivered::node_type node;
  {
    const base::LockGuard lock(mutex_);
    node = gradients_.delivered.extract({pass, message});
  }
  if (!node) return released_context(id_);
  return std::move(node.mapped());
}

void ContextRecord::forget_delivered(PassNumber pass) {
  HeldGradients::Delivered forgotten;  // destroyed outside the lock
  const base::LockGuard lock(mutex_);
  auto& delivered = gradients_.delivered;
  while (!delivered.empty() && delivered.begin()->first.first <= pass) {
    forgotten.insert(delivered.extract(delivered.begin()));
  }
}

void ContextRecord::stage(PassNumber pass, GradientBook&& book) {
  const base::LockGuard lock(mutex_);
  if (phase_ != Phase::over && !decided_.contains(pass)) gradients_.staged.insert_or_assign(pass, std::move(book));
}

Result<bool> ContextRecord::learn(const DecidedSet& decided) {
  const base::LockGuard lock(mutex_);
  if (!decided_.learn(decided)) return false;
  const c10::AutoGradMode no_graph(false);
  Result<bool> merged = true;
  auto& staged = gradients_.staged;
  while (!staged.empty() && decided_.contains(staged.begin()->first)) {
    auto node = staged.extract(staged.begin());
    if (!decided_.is_ok(node.key())) continue;
    const Result<void> added = tensor::catch_torch(Errc::limit_exceeded, [&]() -> Result<void> {
      mutex_.assert_held();
      gradients_.book.merge(std::move(node.mapped()));
      return {};
    });
    if (!added) merged = added.error();
  }
  return merged;
}

DecidedSet ContextRecord::decided() const {
  const base::LockGuard lock(mutex_);
  return decided_;
}

void ContextRecord::drop(PassNumber pass) {
  std::map<PassNumber, GradientBook>::node_type node;
  const base::LockGuard lock(mutex_);
  node = gradients_.staged.extract(pass);
}

Result<void> ContextRecord::check_open() const {
  if (is_over()) return released_context(id_);
  return {};
}

Result<GradientBook> ContextRecord::gradients() const {
  const base::LockGuard lock(mutex_);
  if (phase_ == Phase::over) return released_context(id_);
  return gradients_.book;
}

ContextInfo ContextRecord::info(std::set<WorkerId>& workers) const {
  ContextInfo info;
  info.id = id_;
  const base::LockGuard lock(mutex_);
  info.sent = sent_.size();
  info.received = received_;
  info.bytes = recorded_bytes_ + gradients_.book.bytes();
  for (const auto& [pass, book] : gradients_.staged) info.bytes += book.bytes();
  info.passes = decided_.up_to().value;
  workers = met_;
  return info;
}

Result<void> check_has_gradients(const ContextRecord& context) {
  if (auto open = context.check_open(); !open) return open;
  const DecidedSet decided = context.decided();
  const std::string name = "autograd context " + to_string(context.id());
  if (decided.up_to().value == 0) {
    return Error(Errc::bad_arguments, name + " has no gradients: call context.backward({loss}) before the step");
  }
  if (!decided.is_ok(decided.up_to())) {
    return Error(Errc::bad_arguments, "the last backward pass of " + name +
                                          " failed: nothing is stepped by what earlier ones left; begin a new context");
  }
  return {};
}

}  // namespace caftan::autograd
