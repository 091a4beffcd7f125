#include "caftan/rpc/internal/batches.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caftan/base/wait_permit.hpp"
#include "caftan/rpc/registry.hpp"
#include "serving.hpp"

namespace caftan::rpc {

namespace {

/// A frame names at most 64 held objects (call.md, section chain); one place is left for the object of an exclusive
/// method.
constexpr std::size_t kMostBatched = 63;

/// Returns the objects that any of the requests' chains holds, each once.
HeldObjects held_by_any(const BatchedRequests& requests) {
  std::vector<HeldObject> all;
  for (const auto& request : requests) {
    if (!request->in.info.held) continue;
    for (const HeldObject& held : *request->in.info.held) {
      const bool is_known =
          std::any_of(all.begin(), all.end(), [&](const HeldObject& one) { return one.id == held.id; });
      if (!is_known && all.size() < kMostBatched) all.push_back(held);
    }
  }
  return all.empty() ? nullptr : std::make_shared<const std::vector<HeldObject>>(std::move(all));
}

/// Returns what the code of a run has of its requests.
Ambient ambient_of(const BatchedRequests& requests) {
  const CallInfo& first = requests.front()->in.info;
  Ambient ambient;
  ambient.held = held_by_any(requests);
  ambient.deadline = first.deadline;
  ambient.trace = first.trace;
  ambient.grad_mode = first.grad_mode;
  for (const auto& request : requests) {
    ambient.deadline = std::max(ambient.deadline, request->in.info.deadline);
    ambient.depth = std::max(ambient.depth, request->in.info.depth + 1);
  }
  if (const Ambient* const around = Ambient::current()) ambient.turn = around->turn;
  return ambient;
}

}  // namespace

void join_batch(std::unique_ptr<BatchedRequest> request) {
  Batches& batches = *request->in.batches;
  batches.join(std::move(request));
}

std::vector<std::string> wrong_limits(std::string_view function, const BatchLimits& limits) {
  constexpr std::size_t kMostRequests = 65536;
  constexpr base::Duration kLongestWait = std::chrono::hours(1);
  const std::string name = "'" + std::string(function) + "' is batched with ";
  std::vector<std::string> wrong;
  if (limits.max_size < 1 || limits.max_size > kMostRequests) {
    wrong.push_back(name + "max_size " + std::to_string(limits.max_size) + ": it must be 1 to " +
                    std::to_string(kMostRequests));
  }
  if (limits.max_wait < base::Duration::zero() || limits.max_wait > kLongestWait) {
    wrong.push_back(name + "max_wait " + std::to_string(limits.max_wait.count()) + " ns: it must be 0 to 1 h");
  }
  return wrong;
}

Error wrong_number_of_results(std::string_view function, std::size_t requests, std::size_t results) {
  return Error(Errc::remote_exception, std::string(function) + ": its batch had " + std::to_string(requests) +
                                           " requests, and it returned " + std::to_string(results) +
                                           " results: return one for each request, in the same order");
}

void Batches::join(std::unique_ptr<BatchedRequest> request) {
  const Invocation& in = request->in;
  const Key key{in.entry, in.object ? in.object->id() : RRefId(), in.info.grad_mode};
  const std::weak_ptr<HostedObject> object = in.object;
  LinePtr line;
  BatchNext next;
  {
    const base::LockGuard lock(mutex_);
    const base::TimePoint now = caller_.executor().clock().now();
    LinePtr& place = lines_[key];
    if (!place) {
      place = std::make_shared<Line>(key, object, limits_of(*key.function));
      if (closed_) (void)place->queue.close(now);
    }
    line = place;
    next = line->queue.join(std::move(request), now);
  }
  follow(line, next);
}

BatchLimits Batches::limits_of(const FunctionEntry& function) const {
  BatchLimits limits = function.batch;
  if (const auto changed = changed_sizes_.find(&function); changed != changed_sizes_.end()) {
    limits.max_size = changed->second;
  }
  return limits;
}

Result<void> Batches::set_max_size(const FunctionEntry& function, std::size_t size) {
  const std::vector<std::string> wrong = wrong_limits(function.name, {.max_size = size});
  if (!wrong.empty()) return Error(Errc::bad_arguments, caller_.name(), wrong.front());
  std::vector<std::pair<LinePtr, BatchNext>> all;
  {
    const base::LockGuard lock(mutex_);
    changed_sizes_[&function] = size;
    const base::TimePoint now = caller_.executor().clock().now();
    for (const auto& [key, line] : lines_) {
      if (key.function != &function) continue;
      line->queue.set_max_size(size);
      do {
        all.emplace_back(line, line->queue.look(now));
      } while (all.back().second.run);
    }
  }
  for (const auto& [line, next] : all) follow(line, next);
  return {};
}

void Batches::close() {
  std::vector<LinePtr> started;
  {
    const base::LockGuard lock(mutex_);
    closed_ = true;
    const base::TimePoint now = caller_.executor().clock().now();
    for (const auto& [key, line] : lines_) {
      if (line->queue.close(now).run) started.push_back(line);
    }
  }
  for (const LinePtr& line : started) start(line);
}

void Batches::follow(const LinePtr& line, const BatchNext& next) {
  if (next.run) start(line);
  if (!next.wake_at) return;
  caller_.executor().post_at(
      *next.wake_at, [self = weak_from_this(), worker = caller_.weak_from_this(), line = std::weak_ptr<Line>(line)] {
        const std::shared_ptr<Caller> alive = worker.lock();
        const std::shared_ptr<Batches> batches = self.lock();
        const LinePtr waited = line.lock();
        if (alive && batches && waited) batches->on_timer(waited);
      });
}

void Batches::on_timer(const LinePtr& line) {
  BatchNext next;
  {
    const base::LockGuard lock(mutex_);
    next = line->queue.on_timer(caller_.executor().clock().now());
    remove_idle(line);
  }
  follow(line, next);
}

void Batches::start(const LinePtr& line) {
  caller_.executor().post([self = shared_from_this(), alive = caller_.shared_from_this(), line] {
    base::RunnerLimit* const limit = base::RunnerLimit::current();
    if (!limit || line->key.object) return self->take_turn(line);
    unsigned depth = 0;
    {
      const base::LockGuard lock(self->mutex_);
      if (const auto* const first = line->queue.first()) depth = (*first)->in.info.depth;
    }
    if (limit->may_begin(depth)) return self->take_turn(line);
    limit->hold_call(depth, base::Task([self, alive, line] { self->take_turn(line); }));
  });
}

void Batches::take_turn(const LinePtr& line) {
  const std::shared_ptr<HostedObject> object = line->object.lock();
  if (!object) return run(line);
  object->strand().run(
      [self = shared_from_this(), alive = caller_.shared_from_this(), object, line] { self->run(line); },
      line->key.function->mode);
}

void Batches::run(const LinePtr& line) {
  BatchedRequests taken;
  {
    const base::LockGuard lock(mutex_);
    taken = line->queue.begin();
    remove_idle(line);
  }
  BatchedRequests requests = leave_out_unwanted(std::move(taken));
  if (requests.empty()) return;
  const FunctionEntry& function = *line->key.function;
  Ambient ambient = ambient_of(requests);
  std::optional<Hold> hold;
  if (function.mode == TurnMode::exclusive) hold.emplace(ambient, *requests.front()->in.object);
  const AmbientSwap swap(&ambient);
  function.invoke_batch(caller_, requests);
}

BatchedRequests Batches::leave_out_unwanted(BatchedRequests&& taken) {
  BatchedRequests wanted;
  wanted.reserve(taken.size());
  for (auto& request : taken) {
    const CallInfo& info = request->in.info;
    Result<void> begun = begin_served(caller_, info);
    if (begun && info.gate && info.gate->is_caller_gone()) {
      begun = Error(Errc::peer_down, caller_.name(), "the connection to the caller ended before the run began");
    }
    if (begun) {
      wanted.push_back(std::move(request));
    } else {
      request->in.completion.fail(begun.error().at(caller_.name()));
    }
  }
  return wanted;
}

void Batches::remove_idle(const LinePtr& line) {
  if (!line->queue.is_idle()) return;
  const auto place = lines_.find(line->key);
  if (place != lines_.end() && place->second == line) lines_.erase(place);
}

}  // namespace caftan::rpc
