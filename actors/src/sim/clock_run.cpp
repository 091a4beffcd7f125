#include "sim/clock_run.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <system_error>
#include <utility>

#include "caftan/base/settings_io.hpp"
#include "caftan/sim/sequential.hpp"

namespace caftan::actors {
namespace {

namespace fs = std::filesystem;
using sim::Time;

constexpr base::Duration kSlice = std::chrono::milliseconds(200);  // of a grant, as far as it can be known
constexpr base::Duration kLook = std::chrono::milliseconds(50);    // between looks for a command or a stop
constexpr base::Duration kGrace = std::chrono::milliseconds(300);  // for other errors, once there is one
constexpr base::Duration kFinest = std::chrono::milliseconds(1);   // of real time
constexpr std::int64_t kDeterministicSlices = 100;

/// Returns the number of a text such as "12.5". Errors: invalid_config.
Result<double> number_of(const std::string& key, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  return Error(Errc::invalid_config, key + ": '" + printable(text) + "' is no number");
}

Result<Time> time_of_key(const std::string& key, double units) {
  const Result<Time> time = sim::time_of(units);
  if (!time) return Error(Errc::invalid_config, key + " = " + format_number(units) + ": " + time.error().text());
  return time;
}

Result<sim::GrantOptions> options_of(const sim::ClockConfig& config) {
  sim::GrantOptions options{.end_time = config.end_time,
                            .checkpoint_every = config.checkpoint.every,
                            .warmup = config.warmup,
                            .pause_at = {},
                            .real_time = config.real_time};
  for (const std::string& text : config.pause_at) {
    const Result<double> at = number_of("pause_at", text);
    if (!at) return at.error();
    options.pause_at.push_back(*at);
  }
  return options;
}

/// Returns the series of a text such as "'chassis.positon'; did you mean 'chassis.position'?".
std::string series_of(const std::string& missing) { return missing.substr(0, missing.rfind("; did you mean ")); }

/// Returns the first multiple of `every` behind `from`.
Time multiple_behind(Time from, Time every) {
  if (every == Time{}) return sim::kNever;
  const std::int64_t count = from.ticks / every.ticks + 1;
  return count > sim::kNever.ticks / every.ticks ? sim::kNever : Time{count * every.ticks};
}

/// Returns the mean of a statistic that has one; nothing for a histogram and for a tally without a value.
std::optional<double> mean_of(const sim::Statistic& statistic) {
  if (const auto* const average = std::get_if<sim::TimeAverage>(&statistic)) return average->mean();
  const auto* const tally = std::get_if<sim::Tally>(&statistic);
  if (tally == nullptr || tally->count() == 0) return std::nullopt;
  return tally->mean();
}

}  // namespace

fs::path command_file(const fs::path& run) { return run / "sim-command"; }

ClockRun::ClockRun(RoleContext& context, const sim::ClockConfig& config, std::vector<sim::PartitionPort> partitions,
                   std::vector<std::string> members, std::stop_token stop)
    : context_(context),
      config_(config),
      partitions_(std::move(partitions)),
      members_(std::move(members)),
      stop_(std::move(stop)),
      files_(context.output_directory()),
      work_(partitions_.size()) {}

Result<void> ClockRun::run() {
  if (auto done = find_resumed(); !done) return done;
  if (auto done = open(); !done) return done;
  if (auto done = make_rule(); !done) return done;
  begin_ = base::SteadyClock().now();
  if (auto done = advance_to_end(); !done) return done;
  if (stop_.stop_requested()) return {};
  if (auto done = take_results(); !done) return done;
  return close();
}

// ---- the begin

Result<void> ClockRun::find_resumed() {
  if (!config_.resume) return {};
  auto found = find_simulation_checkpoint(*config_.resume);
  if (!found) return found.error();
  resumed_ = *std::move(found);
  newest_checkpoint_ = resumed_->folder.string();
  return {};
}

Result<void> ClockRun::open() {
  sim::OpenRequest request{.simulation = context_.seed("simulation"),
                           .members = members_,
                           .seed = context_.run_seed(),
                           .sync = config_.sync,
                           .events = static_cast<std::uint64_t>(config_.events),
                           .folder = context_.output_directory().string(),
                           .logs_events = config_.log.events};
  request.records.series = config_.record.series;
  request.records.all = std::ranges::find(config_.record.series, "*") != config_.record.series.end();
  if (request.records.all) request.records.series.clear();
  if (resumed_) request.checkpoint = resumed_->files();
  const auto read = [](const char* key, double units, Time& into) -> Result<void> {
    const Result<Time> time = time_of_key(key, units);
    if (!time) return time.error();
    into = *time;
    return {};
  };
  if (auto done = read("record.every", config_.record.every, request.records.every); !done) return done;
  if (auto done = read("log.from", config_.log.from, request.log_from); !done) return done;
  if (config_.log.until) {
    if (auto done = read("log.until", *config_.log.until, request.log_until); !done) return done;
  }
  if (config_.break_at.time) {
    if (auto done = read("break_at.time", *config_.break_at.time, request.break_time); !done) return done;
    request.break_lp = config_.break_at.lp;
  }
  std::vector<Future<sim::OpenReply>> opened;
  for (const sim::PartitionPort& port : partitions_) {
    opened.push_back(port.open(request));
    ++request.index;
  }
  const auto replies = all(std::move(opened));
  if (!replies) return replies.error();
  return stop_.stop_requested() ? Result<void>() : check_opened(*replies);
}

Result<void> ClockRun::check_opened(const std::vector<sim::OpenReply>& replies) {
  model_ = replies.front();
  for (std::size_t i = 1; i < replies.size(); ++i) model_.handled += replies[i].handled;
  for (std::size_t i = 1; i < replies.size(); ++i) {
    const std::string other = config_difference(replies[i].config, model_.config, {});
    if (!other.empty()) {
      return Error(Errc::invalid_config,
                   members_[i] + ": all partitions need the same config: " + other.substr(0, other.find(',')) +
                       " differs from that of " + members_.front());
    }
    if (replies[i].digest == model_.digest) continue;
    return Error(Errc::invalid_config, members_[i] + ": its model differs from that of " + members_.front() +
                                           ", though the config does not: `build` must depend on the config alone");
  }
  for (const std::string& warning : model_.warnings) context_.report("warning: " + warning);
  if (!resumed_) return {};
  const std::string other = config_difference(model_.config, resumed_->manifest.config, config_.changed);
  if (!other.empty()) {
    return Error(Errc::invalid_config, resumed_->folder.string() +
                                           ": the checkpoint is of a run with another config: " + other +
                                           "; take over its value, or list the key in `changed`");
  }
  const Result<Time> warmup = time_of_key("warmup", config_.warmup);
  if (!warmup) return warmup.error();
  if (const std::string why = warmup_difference(resumed_->manifest, *warmup); !why.empty())
    return Error(Errc::invalid_config, resumed_->folder.string() + ": the checkpoint " + why);
  context_.report("resumed: virtual time " + to_string(model_.border) + " of " + resumed_->folder.string());
  return {};
}

Result<void> ClockRun::make_rule() {
  if (stop_.stop_requested()) return {};
  const auto options = options_of(config_);
  if (!options) return options.error();
  auto rule = sim::GrantRule::make(*options, static_cast<std::uint32_t>(partitions_.size()), model_.border);
  if (!rule) return rule.error();
  rule_ = *std::move(rule);
  meter_.emplace(static_cast<std::uint32_t>(partitions_.size()), model_.lookahead, model_.border, rule_->end(),
                 model_.handled);
  slice_ = context_.deterministic() ? Time{std::max<std::int64_t>(rule_->end().ticks / kDeterministicSlices, 1)}
                                    : Time{std::max<std::int64_t>(rule_->end().ticks / 1000, 1)};
  return {};
}

// ---- border after border

base::Duration ClockRun::elapsed() const { return base::SteadyClock().now() - begin_; }

/// Returns the farthest border of the next grant: borders whose hash is wanted, and where the run is looked at again.
Time ClockRun::most() {
  const Result<Time> hashes = sim::time_of(config_.log.hashes);
  Time to = hashes ? multiple_behind(rule_->border(), *hashes) : sim::kNever;
  // With no event left there is nothing to look at before the end; in real time grants are short.
  if (rule_->next_event() != sim::kNever && config_.real_time == 0) to = std::min(to, later(rule_->border(), slice_));
  return to;
}

/// Lets the next grant take about kSlice. With `deterministic` borders follow from the file alone.
void ClockRun::adapt(base::Duration took, Time length) {
  if (context_.deterministic() || config_.real_time > 0 || length < slice_) return;
  const double factor = std::clamp(
      static_cast<double>(kSlice.count()) / static_cast<double>(std::max<std::int64_t>(took.count(), 1)), 0.25, 4.0);
  const double ticks = std::clamp(static_cast<double>(slice_.ticks) * factor, 1.0, 4e18);
  slice_ = Time{static_cast<std::int64_t>(ticks)};
}

/// Returns how long it takes in real time until something is due: an event, or a border that the file asks for. What is
/// due follows from the start, so that lateness does not add up.
base::Duration ClockRun::until_due() {
  if (config_.real_time == 0) return {};
  const auto next = rule_->next(std::chrono::hours(24 * 365 * 100), most());
  const Time target = next ? std::min(next->border, rule_->next_event()) : rule_->next_event();
  const double seconds = Time{target.ticks - model_.border.ticks}.units() / config_.real_time;
  const double left = seconds - static_cast<double>(elapsed().count()) * 1e-9;
  return base::Duration(static_cast<std::int64_t>(std::clamp(left, 0.0, 3600.0) * 1e9));
}

Result<void> ClockRun::advance_to_end() {
  while (!stop_.stop_requested() && rule_->border() < rule_->end()) {
    if (const auto command = take_command(); command == "pause") {
      if (auto done = pause(); !done) return done;
      continue;
    }
    if (const base::Duration early = until_due(); early > base::Duration::zero()) {
      wait(std::min(early, kLook));
      continue;
    }
    const std::optional<sim::Grant> grant = rule_->next(elapsed(), most());
    if (!grant) {
      wait(kFinest);
      continue;
    }
    const Time before = rule_->border();
    const base::Duration begin = elapsed();
    if (auto done = advance(*grant); !done) return done;
    if (stop_.stop_requested()) return {};
    adapt(elapsed() - begin, Time{grant->border.ticks - before.ticks});
    if (auto done = at_border(*grant); !done) return done;
  }
  return {};
}

Result<void> ClockRun::advance(const sim::Grant& grant) {
  const Result<Time> hashes = sim::time_of(config_.log.hashes);
  const bool wants_hash = hashes && *hashes > Time{} && (grant.border.ticks % hashes->ticks == 0 || grant.ends);
  rule_->on_granted(grant);
  std::vector<Future<sim::BorderReply>> advancing;
  for (const sim::PartitionPort& port : partitions_) {
    advancing.push_back(port.advance({grant.border, grant.ends_warmup, wants_hash}));
  }
  auto replies = all(std::move(advancing));
  if (!replies || stop_.stop_requested()) return replies ? Result<void>() : replies.error();
  std::uint64_t hash = 0;
  std::vector<sim::Record> records;
  missing_series_ = replies->front().missing;
  for (std::uint32_t i = 0; i < replies->size(); ++i) {
    if (auto done = take(i, std::move((*replies)[i]), wants_hash, hash, records); !done) return done;
  }
  if (auto done = files_.add_records(std::move(records)); !done) return done;
  return wants_hash ? files_.add_hash(std::min(grant.border, rule_->end()), hash) : Result<void>();
}

Result<void> ClockRun::take(std::uint32_t partition, sim::BorderReply reply, bool wants_hash, std::uint64_t& hash,
                            std::vector<sim::Record>& records) {
  sim::BorderReport report;
  if (auto read = wire::decode_into(reply.report, report); !read) return read.error();
  if (wants_hash) hash += reply.hash;
  work_[partition] = {report.windows, base::Duration(reply.busy), base::Duration(reply.waiting)};
  std::ranges::move(reply.records, std::back_inserter(records));
  // A series is missing if no partition has it; the nearest name is known to those that record that one.
  std::erase_if(missing_series_, [&](std::string& series) {
    const auto same = std::ranges::find(reply.missing, series_of(series), series_of);
    if (same == reply.missing.end()) return true;
    series = std::max(series, *same, [](const std::string& a, const std::string& b) { return a.size() < b.size(); });
    return false;
  });
  for (bool has_more = reply.has_more; has_more;) {
    auto page = partitions_[partition].records().result();
    if (!page) return page.error();
    std::ranges::move(page->records, std::back_inserter(records));
    has_more = page->has_more;
  }
  return rule_->on_report(partition, report);
}

Result<void> ClockRun::at_border(const sim::Grant& grant) {
  meter_->on_border(rule_->sums(), work_, elapsed());
  const Time end = rule_->end();
  const auto whole = [](Time time) { return static_cast<std::int64_t>(std::ceil(time.units())); };
  context_.progress(whole(std::min(rule_->border(), end)), whole(end), meter_->line());
  context_.metric("events_per_s", meter_->events_per_s());
  context_.metric("waiting", meter_->waiting());
  if (config_.real_time > 0) {
    const Time lateness = rule_->lateness(elapsed());
    if (auto done = files_.add_lateness(rule_->border(), lateness); !done) return done;
    const double seconds = lateness.units() / config_.real_time;
    if (config_.late == sim::Late::fail && seconds > static_cast<double>(config_.tolerance.count()) * 1e-9) {
      return Error(Errc::timeout,
                   "virtual time " + to_string(rule_->border()) + " was reached " + format_digits(seconds, 3) +
                       " s late, more than `tolerance` allows: lower real_time, or set late = \"report\"");
    }
  }
  if (grant.saves) {
    if (auto done = save(); !done) return done;
  }
  if (!grant.pauses || rule_->border() >= end) return {};
  return pause();
}

Result<void> ClockRun::save() {
  if (context_.output_directory().empty()) return {};
  const Time every = *sim::time_of(config_.checkpoint.every);
  const fs::path folder = checkpoint_folder(context_.output_directory(), rule_->border().ticks / every.ticks);
  if (auto made = make_checkpoint_folder(folder); !made) return made;
  std::vector<Future<void>> saving;
  for (const sim::PartitionPort& port : partitions_) saving.push_back(port.save(folder.string()));
  if (auto done = all_done(std::move(saving)); !done) return done;
  if (stop_.stop_requested()) return {};
  const Time warmup = *sim::time_of(config_.warmup);
  const Time before = resumed_ ? resumed_->manifest.counted_from : Time{};
  const SimulationManifest manifest{.digest = model_.digest,
                                    .seed = context_.run_seed(),
                                    .border = rule_->border(),
                                    .partitions = static_cast<std::uint32_t>(partitions_.size()),
                                    .config = model_.config,
                                    .counted_from = warmup <= rule_->border() ? warmup : before};
  if (auto done = finish_checkpoint(folder, manifest, config_.checkpoint.keep); !done) return done;
  newest_checkpoint_ = folder.string();
  context_.report("checkpoint: virtual time " + to_string(rule_->border()) + " in " + newest_checkpoint_);
  return {};
}

/// Returns the command that `caftan sim` has left, once.
std::optional<std::string> ClockRun::take_command() const {
  if (context_.output_directory().empty()) return std::nullopt;
  const fs::path file = command_file(context_.output_directory());
  std::ifstream stream(file);
  std::string word;
  if (!(stream >> word)) return std::nullopt;
  std::error_code ignored;
  fs::remove(file, ignored);
  return word;
}

Result<void> ClockRun::pause() {
  context_.report("paused at virtual time " + to_string(rule_->border()) + ", go on with: sim go " +
                  context_.output_directory().string());
  const base::TimePoint paused = base::SteadyClock().now();
  while (!stop_.stop_requested()) {
    const auto command = take_command();
    if (command == "go") break;
    if (command == "step") {
      rule_->step_next();
      break;
    }
    wait(kLook);
  }
  begin_ += base::SteadyClock().now() - paused;  // real time stands still meanwhile
  return {};
}

void ClockRun::wait(base::Duration time) const {
  Promise<void> asked;
  Future<void> stopped = asked.future();
  bool is_set = false;
  {
    const std::stop_callback callback(stop_, [&] { is_set = asked.set({}); });
    (void)stopped.wait_for(time);
  }
  if (!is_set) (void)asked.set({});
}

// ---- the end

Result<void> ClockRun::take_results() {
  std::vector<std::uint64_t> hashes;
  std::vector<sim::LpStatistic> statistics;
  for (const sim::PartitionPort& port : partitions_) {
    sim::ResultsPage page{.has_more = true};
    while (page.has_more) {
      auto next = port.results(page.next_hash, page.next_statistic).result();
      if (!next) return worst_of({next.error()});
      page = *std::move(next);
      hashes.insert(hashes.end(), page.hashes.begin(), page.hashes.end());
      std::ranges::move(page.statistics, std::back_inserter(statistics));
    }
  }
  const auto merged = sim::merge_statistics(statistics);
  if (!merged) return merged.error();
  if (auto written = files_.write_scalars(*merged); !written) return written;
  for (const std::string& series : missing_series_)
    context_.report("warning: no process has recorded the series " + series);
  for (const std::string& line : meter_->report()) context_.report(line);
  const std::string fingerprint = "sha256:" + sim::fingerprint(hashes);
  context_.metric("events", static_cast<double>(meter_->handled()));
  context_.metric("seconds", static_cast<double>(elapsed().count()) * 1e-9);
  for (const sim::MergedStatistic& one : *merged) {
    if (const auto mean = mean_of(one.value)) context_.metric(one.name + ".mean", *mean);
  }
  context_.fingerprint(fingerprint);
  context_.report("fingerprint " + fingerprint);
  return {};
}

Result<void> ClockRun::close() {
  std::vector<Future<void>> closing;
  for (const sim::PartitionPort& port : partitions_) closing.push_back(port.close());
  return all_done(std::move(closing));
}

// ---- several calls at once

template <class T>
Result<void> ClockRun::wait_for_all(std::vector<Future<T>>& futures) {
  const auto states = rpc::states_of(futures);
  while (true) {
    const bool is_last = stop_.stop_requested();
    // A run that lost a worker is asked to stop at once: this wait still gets to know why.
    const auto waited = rpc::wait_several(states, rpc::Until::all, is_last ? kGrace : kLook);
    if (!waited) return waited.error();
    if (*waited && **waited == futures.size()) return {};
    if (*waited) break;
    if (is_last) return {};
  }
  // A lost worker is an error of several calls: the partitions that are left say at which virtual time.
  (void)rpc::wait_several(states, rpc::Until::every, kGrace);
  std::vector<Error> errors;
  for (Future<T>& future : futures) {
    if (!future.ready()) continue;
    if (const Result<void> status = future.outcome_status(); !status) errors.push_back(status.error());
  }
  return worst_of(errors);
}

template <class T>
Result<std::vector<T>> ClockRun::all(std::vector<Future<T>> futures) {
  if (auto done = wait_for_all(futures); !done) return done.error();
  if (stop_.stop_requested()) return std::vector<T>();
  std::vector<T> values;
  for (Future<T>& future : futures) {
    Result<T> value = std::move(future).result();
    if (!value) return value.error();
    values.push_back(*std::move(value));
  }
  return values;
}

Result<void> ClockRun::all_done(std::vector<Future<void>> futures) { return wait_for_all(futures); }

/// Returns the error that says most: not the loss of a worker if a handler threw, and else that of a partition that
/// knows how far the lost one was.
Error ClockRun::worst_of(const std::vector<Error>& errors) const {
  const auto own = std::ranges::find_if(errors, [](const Error& error) { return error.code() != Errc::peer_down; });
  if (own != errors.end()) return *own;
  const auto with_time = std::ranges::find_if(
      errors, [](const Error& error) { return error.text().find("virtual time") != std::string::npos; });
  const Error& error = with_time != errors.end() ? *with_time : errors.front();
  std::string text = error.text();
  if (with_time == errors.end() && rule_) text += "; on the way to virtual time " + to_string(rule_->border());
  text +=
      newest_checkpoint_.empty()
          ? "; there is no checkpoint (roles." + context_.role() + ".config.checkpoint.every)"
          : "; go on from the newest checkpoint with roles." + context_.role() + ".config.resume=" + newest_checkpoint_;
  return {Errc::peer_down, error.worker(), text};
}

}  // namespace caftan::actors

namespace caftan::sim {

ClockDriver::ClockDriver(RoleContext& context, ClockConfig config) : context_(context), config_(std::move(config)) {}

ClockDriver::~ClockDriver() = default;

Result<void> ClockDriver::run(std::stop_token stop) {
  std::vector<std::string> members;
  std::vector<PartitionPort> ports = partitions(members);
  return actors::ClockRun(context_, config_, std::move(ports), std::move(members), std::move(stop)).run();
}

}  // namespace caftan::sim
