#include "kernel_checkpoint.hpp"

#include <algorithm>
#include <utility>

#include "model_code.hpp"

namespace caftan::sim {
namespace {

/// An event of a checkpoint.
struct SavedEvent {
  std::int64_t time = 0;
  std::uint64_t sequence = 0;
  std::uint32_t source = 0;
  std::uint32_t to = 0;
  std::uint8_t priority = 0;
  std::uint8_t type = 0;
  std::vector<std::byte> payload{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& time& sequence& source& to& priority& type& payload;
  }
};

/// How many numbers a process has drawn from a stream with a name.
struct SavedStream {
  std::uint32_t lp = 0;
  std::uint64_t name = 0;
  std::uint64_t draws = 0;
  bool operator<(const SavedStream& other) const { return std::pair(lp, name) < std::pair(other.lp, other.name); }

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& lp& name& draws;
  }
};

constexpr char kKind[] = "caftan.sim.partition";

/// Reads one record of a checkpoint.
template <class T>
Result<void> read_record(const wire::CheckpointFile& file, const char* name, T& into) {
  const Result<wire::ByteView> bytes = file.find(name);
  if (!bytes) return bytes.error();
  return wire::decode_into(*bytes, into);
}

}  // namespace

/// What a file of a checkpoint says of itself.
struct KernelCheckpoint::Head {
  std::uint64_t digest = 0;
  std::uint64_t seed = 0;
  std::uint64_t first = 0;  // id
  std::uint64_t count = 0;  // of processes
  Time bound{};
  Time finish = kNever;
  Time least_delay = kNever;
  EventCounters counters{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& digest& seed& first& count& bound& finish& least_delay& counters;
  }
};

void write_state(const LpTable& table, const LpEntry& entry, wire::Bytes& state) {
  state.clear();
  wire::SelfContained whole;
  wire::OutArchive archive(state);
  archive.attach(&whole);
  table.class_of(entry).save(entry.object, archive);
}

Result<wire::CheckpointFile> KernelCheckpoint::save() const {
  wire::Bytes processes;
  wire::Bytes state;
  std::size_t at = 0;
  const auto where = [&] { return kernel_.layout_->name_of(kernel_.table_->first() + at) + ", serialize"; };
  const std::optional<Error> thrown = run_model_code(
      [&] {
        wire::OutArchive archive(processes);
        for (; at < kernel_.table_->size(); ++at) {
          const LpEntry& entry = kernel_.table_->at(static_cast<std::uint32_t>(kernel_.table_->first() + at));
          write_state(*kernel_.table_, entry, state);
          archive << entry.sequence << entry.draws << entry.hash;
          archive.save_count(state.size());
          archive.save_binary(state.data(), state.size());
        }
      },
      where);
  if (thrown) return *thrown;
  std::vector<SavedEvent> events;
  for (const Event& event : kernel_.queue_.all()) {
    if (kernel_.cancelled_.contains({event.source, event.sequence})) continue;
    const wire::ByteView payload =
        event.is_awaited() ? kernel_.awaited_.bytes(event.payload) : PayloadStore::view(event);
    events.push_back({event.time,
                      event.sequence,
                      event.source,
                      event.to,
                      static_cast<std::uint8_t>(event.priority),
                      static_cast<std::uint8_t>(event.type),
                      {payload.begin(), payload.end()}});
  }
  std::vector<SavedStream> streams;
  for (const auto& [key, draws] : kernel_.draws_) streams.push_back({key.first, key.second, draws});
  std::sort(streams.begin(), streams.end());
  const Head head{kernel_.layout_->digest(), kernel_.options_.seed, kernel_.table_->first(),
                  kernel_.table_->size(),    kernel_.bound_,        kernel_.finish_,
                  kernel_.least_delay_,      kernel_.counters_};
  wire::CheckpointFile file{.kind = kKind};
  const auto add = [&file](const char* name, Result<wire::Bytes> bytes) -> Result<void> {
    if (!bytes) return bytes.error();
    file.records.push_back({name, *std::move(bytes)});
    return {};
  };
  file.records.push_back({"processes", std::move(processes)});
  if (auto done = add("head", wire::encode(head)); !done) return done.error();
  if (auto done = add("events", wire::encode(events)); !done) return done.error();
  if (auto done = add("streams", wire::encode(streams)); !done) return done.error();
  if (auto done = add("last", wire::encode(kernel_.recorder_.last())); !done) return done.error();
  return file;
}

void KernelCheckpoint::load_processes(const Head& head, wire::ByteView bytes, std::uint64_t& id) {
  wire::InArchive archive(bytes);
  for (id = head.first; id < head.first + head.count; ++id) {
    LpEntry read;
    std::uint64_t sequence = 0;
    archive >> sequence >> read.draws >> read.hash;
    if (sequence > Event::kSequences)
      throw wire::DecodeError("the process has scheduled more events than there can be");
    const wire::ByteView state = archive.take(archive.load_count());
    const auto number = static_cast<std::uint32_t>(id);
    if (!kernel_.table_->has(number)) continue;
    LpEntry& entry = kernel_.table_->at(number);
    wire::SelfContained whole;
    wire::InArchive own(state);
    own.attach(&whole);
    kernel_.table_->class_of(entry).load(entry.object, own);
    if (own.remaining() > 0) throw wire::DecodeError("the state has bytes left");
    entry.sequence = sequence;
    entry.draws = read.draws;
    entry.hash = read.hash;
    ++kernel_.loaded_;
  }
  if (archive.remaining() > 0) throw wire::DecodeError("there are bytes behind the last process");
}

Result<void> KernelCheckpoint::load(const wire::CheckpointFile& file) {
  Head head;
  std::vector<SavedEvent> events;
  std::vector<SavedStream> streams;
  std::vector<Recorder::Last> last;
  if (auto done = read_record(file, "head", head); !done) return done;
  if (head.digest != kernel_.layout_->digest())
    return Error(Errc::invalid_config,
                 "the checkpoint is of another model: its processes, events, groups or lookahead differ");
  if (head.seed != kernel_.options_.seed)
    return Error(Errc::invalid_config, "the checkpoint is of a run with another seed: " + std::to_string(head.seed) +
                                           ", not " + std::to_string(kernel_.options_.seed));
  if (head.first > kernel_.layout_->size() || head.count > kernel_.layout_->size() - head.first)
    return Error(Errc::malformed_payload, "the checkpoint has processes that the model does not have");
  if (auto done = read_record(file, "events", events); !done) return done;
  if (auto done = read_record(file, "streams", streams); !done) return done;
  if (auto done = read_record(file, "last", last); !done) return done;
  const Result<wire::ByteView> processes = file.find("processes");
  if (!processes) return processes.error();
  std::uint64_t id = head.first;
  const auto where = [&] { return kernel_.layout_->name_of(id) + ", its state in the checkpoint"; };
  if (const std::optional<Error> thrown = run_model_code([&] { load_processes(head, *processes, id); }, where))
    return *thrown;
  for (const SavedEvent& saved : events) {
    if (!kernel_.table_->has(saved.to)) continue;
    Event event{.time = saved.time, .source = saved.source, .to = saved.to};
    event.sequence = saved.sequence;
    event.priority = saved.priority;
    event.type = saved.type;
    const bool is_known = saved.type < kernel_.layout_->event_types().size() &&
                          kernel_.table_->handler(kernel_.table_->at(saved.to).type, saved.type);
    if (!is_known || saved.time < head.bound.ticks || saved.time == kNever.ticks ||
        saved.sequence >= Event::kSequences || saved.source >= kernel_.layout_->size())
      return Error(Errc::malformed_payload, "the checkpoint has an event that cannot be: of LP " +
                                                std::to_string(saved.source) + " for LP " + std::to_string(saved.to));
    kernel_.push(event, saved.payload);
  }
  for (const SavedStream& stream : streams) {
    if (kernel_.table_->has(stream.lp)) kernel_.draws_[{stream.lp, stream.name}] = stream.draws;
  }
  for (const Recorder::Last& one : last) {
    if (kernel_.table_->has(one.lp.value)) kernel_.recorder_.restore(one);
  }
  kernel_.bound_ = std::max(kernel_.bound_, head.bound);
  kernel_.finish_ = std::min(kernel_.finish_, head.finish);
  kernel_.least_delay_ = std::min(kernel_.least_delay_, head.least_delay);
  // Each file's counts go on in one partition: the one that holds its first process.
  if (head.count > 0 && kernel_.table_->has(static_cast<std::uint32_t>(head.first))) {
    kernel_.counters_.sent += head.counters.sent;
    kernel_.counters_.handled += head.counters.handled;
    kernel_.counters_.cancelled += head.counters.cancelled;
  }
  return {};
}

}  // namespace caftan::sim
