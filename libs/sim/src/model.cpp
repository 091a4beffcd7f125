#include "caftan/sim/model.hpp"

#include "caftan/base/fnv1a.hpp"
#include "caftan/sim/internal/kernel.hpp"
#include "model_code.hpp"

namespace caftan::sim {
namespace {

constexpr const char* kInBuild = "the model's build";

}  // namespace

Time LpContext::delay_of(double delay, LpId to, const EventType& type) {
  const Result<Time> ticks = time_of(delay);
  if (!ticks) kernel_->fail(ticks.error().code(), kernel_->sending(type, to) + ": " + ticks.error().text());
  return *ticks;
}

EventHandle LpContext::send_bytes(Time delay, const EventType& type, LpId to, ScheduleOptions options) {
  return kernel_->send(delay, type, to, options, bytes_);
}

EventHandle LpContext::send_future(Time delay, const EventType& type, LpId to, ScheduleOptions options,
                                   std::unique_ptr<FutureEvent> value) {
  return kernel_->send(delay, type, to, options, std::move(value));
}

std::uint64_t LpContext::seed() const noexcept { return kernel_->options_.seed; }

bool LpContext::cancel(const EventHandle& event) { return kernel_->cancel(event); }

Random LpContext::random(std::string_view stream) {
  const std::uint64_t name = base::fnv1a(stream);
  return Random(seed(), id_.value, name, kernel_->draws_of(stream));
}

std::vector<double> LpContext::uniform_for(std::span<const std::uint64_t> numbers, std::uint64_t ordinal) const {
  std::vector<double> result(numbers.size());
  sim::uniform_for(seed(), numbers, ordinal, result);
  return result;
}

void LpContext::record(std::string_view name, double value) { kernel_->recorder_.record(now_, id_, name, value); }

void LpContext::finish() { kernel_->ask_to_finish(); }

void Builder::lookahead(double units) {
  if (!table_) layout_.set_lookahead(time_of(units));
}

void Builder::lookahead(Time least) {
  if (!table_) layout_.set_lookahead(least);
}

void Builder::group() {
  if (!table_) layout_.begin_group();
}

void Builder::fail(Error error) { layout_.fail(std::move(error)); }

void Builder::warn(std::string text) {
  if (!table_) layout_.warn(std::move(text));
}

void Builder::plan(Time at, std::string what) {
  if (!table_) layout_.plan({at, std::move(what)});
}

Builder::Slots Builder::reserve(const LpClass& type, std::uint64_t count) {
  if (!table_) {
    const std::uint64_t first = layout_.add(type, count);
    return {LpId(first), first, first, nullptr};
  }
  const std::uint64_t first = next_;
  if (count == 0) return {LpId(first), first, first, nullptr};
  const auto& ranges = layout_.ranges();
  const bool is_same = next_range_ < ranges.size() && ranges[next_range_].count == count &&
                       layout_.classes()[ranges[next_range_].type] == &type;
  if (!is_same) {
    fail(Error(Errc::bad_arguments,
               "the model's build adds other processes at its second call than at its first: from LP " +
                   std::to_string(first) + " on; it must depend on its config alone"));
    return {LpId(first), first, first, nullptr};
  }
  ++next_range_;
  next_ += count;
  const LpTable::Slots slots = table_->reserve(type, first, count);
  return {LpId(first), slots.begin, slots.end, slots.memory};
}

void Builder::made() { table_->made(); }

Result<std::unique_ptr<Layout>> lay_out(const std::function<void(Builder&)>& build, std::uint32_t partitions) {
  auto layout = std::make_unique<Layout>();
  const std::optional<Error> failure = run_model_code(
      [&] {
        Builder builder(*layout, nullptr);
        build(builder);
      },
      [] { return std::string(kInBuild); });
  if (failure) return *failure;
  if (const Result<void> placed = layout->place(partitions); !placed) return placed.error();
  return layout;
}

Result<std::unique_ptr<Kernel>> make_kernel(const std::function<void(Builder&)>& build, const KernelOptions& options,
                                            std::uint32_t partition, std::uint32_t partitions) {
  Result<std::unique_ptr<Layout>> laid_out = lay_out(build, partitions);
  if (!laid_out) return laid_out.error();
  std::unique_ptr<Layout> layout = *std::move(laid_out);
  if (partition >= partitions) return Error(Errc::bad_arguments, "there is no partition " + std::to_string(partition));
  auto table = std::make_unique<LpTable>(*layout, partition);
  const std::optional<Error> failure = run_model_code(
      [&] {
        Builder builder(*layout, table.get());
        build(builder);
      },
      [] { return std::string(kInBuild); });
  if (failure) return *failure;
  if (layout->failure()) return *layout->failure();
  if (!table->is_complete())
    return Error(Errc::bad_arguments, "the model's build adds fewer processes at its second call than at its first");
  return std::make_unique<Kernel>(std::move(layout), std::move(table), partition, options);
}

}  // namespace caftan::sim
