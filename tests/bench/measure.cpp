#include "measure.hpp"

#include <malloc.h>
#include <time.h>
#include <unistd.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>
#include <utility>

namespace caftan::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

Nanoseconds read_clock(clockid_t clock) {
  timespec now{};
  if (clock_gettime(clock, &now) != 0) return Nanoseconds{0};
  return std::chrono::seconds{now.tv_sec} + Nanoseconds{now.tv_nsec};
}

/// Pauses between two calls and returns the CPU time that the pause itself used.
Nanoseconds rest(const Request& request) {
  if (request.think == Nanoseconds{0}) return Nanoseconds{0};
  const auto before = read_clock(CLOCK_THREAD_CPUTIME_ID);
  if (request.asleep) {
    std::this_thread::sleep_for(request.think);
  } else {
    const auto until = SteadyClock::now() + request.think;
    while (SteadyClock::now() < until) {
    }
  }
  return read_clock(CLOCK_THREAD_CPUTIME_ID) - before;
}

double microseconds(Nanoseconds duration) { return static_cast<double>(duration.count()) / 1e3; }

/// Returns the lower bound of the bucket of a duration: its eight leading bits.
std::uint64_t bucket_of(std::uint64_t ns) {
  const int width = std::bit_width(ns);
  if (width <= 8) return ns;
  return ns >> (width - 8) << (width - 8);
}

template <class Number>
bool parse_number(const std::string& text, Number low, Number high, Number& out) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return false;
  if (!(value >= low && value <= high)) return false;
  out = value;
  return true;
}

bool set_key(Request& request, const std::string& key, const std::string& value) {
  if (key == "floats") return parse_number<std::size_t>(value, 1, std::size_t{1} << 26, request.floats);
  if (key == "window") return parse_number<std::size_t>(value, 1, 4'096, request.window);
  if (key == "calls") return parse_number<std::size_t>(value, 1, 10'000'000, request.calls);
  if (key == "think_us") {
    double think_us = 0;
    if (!parse_number(value, 0.0, 1e6, think_us)) return false;
    request.think = Nanoseconds{std::llround(think_us * 1e3)};
    return true;
  }
  if (key == "seconds") {
    double seconds = 0;
    if (!parse_number(value, 0.001, 60.0, seconds)) return false;
    request.time = Nanoseconds{std::llround(seconds * 1e9)};
    return true;
  }
  if (key == "rest") {
    request.asleep = value == "sleep";
    return value == "sleep" || value == "compute";
  }
  return false;
}

}  // namespace

Result<Request> parse_request(const std::string& line) {
  std::istringstream words(line);
  Request request;
  words >> request.measure;
  if (request.measure.empty()) return Error(Errc::invalid_config, "empty request");
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    if (equals == std::string::npos || !set_key(request, word.substr(0, equals), word.substr(equals + 1))) {
      return Error(Errc::invalid_config, "unknown key or value out of range: " + word);
    }
  }
  return request;
}

void Histogram::add(Nanoseconds duration) {
  const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(duration.count(), 0));
  ++buckets_[bucket_of(ns)];
  ++count_;
  sum_ns_ += ns;
}

double Histogram::mean_us() const noexcept {
  return count_ == 0 ? 0.0 : static_cast<double>(sum_ns_) / static_cast<double>(count_) / 1e3;
}

double Histogram::quantile_us(double quantile) const {
  const auto rank = static_cast<std::uint64_t>(std::ceil(quantile * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (const auto& [ns, count] : buckets_) {
    seen += count;
    if (seen >= rank) return static_cast<double>(ns) / 1e3;
  }
  return 0.0;
}

std::string Histogram::to_json() const {
  std::string json = "[";
  for (const auto& [ns, count] : buckets_) {
    if (json.size() > 1) json += ',';
    json += '[' + std::to_string(ns) + ',' + std::to_string(count) + ']';
  }
  return json + ']';
}

Line& Line::add(const std::string& key, double value) {
  if (!std::isfinite(value)) return add_json(key, "null");  // JSON has no infinity and no NaN
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return add_json(key, text);
}

Line& Line::add(const std::string& key, std::uint64_t value) { return add_json(key, std::to_string(value)); }

Line& Line::add(const std::string& key, const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return add_json(key, quoted + '"');
}

Line& Line::add_json(const std::string& key, const std::string& json) {
  if (!fields_.empty()) fields_ += ',';
  fields_ += '"' + key + "\":" + json;
  return *this;
}

std::int64_t live_bytes() {
  const auto info = mallinfo2();
  return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
}

std::int64_t resident_bytes() {
  std::int64_t total_pages = 0;
  std::int64_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> total_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

Rig::Rig(std::string side, std::vector<pid_t> peers) : side_(std::move(side)), peers_(std::move(peers)) {
  for (const pid_t peer : peers_) {
    clockid_t clock = 0;
    if (clock_getcpuclockid(peer, &clock) == 0) peer_clocks_.push_back(clock);
  }
}

CpuTimes Rig::cpu_times() const {
  CpuTimes times{read_clock(CLOCK_PROCESS_CPUTIME_ID), Nanoseconds{0}};
  for (const clockid_t clock : peer_clocks_) times.peer += read_clock(clock);
  return times;
}

Line Rig::begin(const Request& request) const {
  Line line;
  line.add("side", side_).add("measure", request.measure);
  return line;
}

Line Rig::sync(const Request& request, const std::function<void()>& call) const {
  constexpr std::size_t kWarmUpCalls = 200;
  const auto warm_until = SteadyClock::now() + request.time / 5;
  for (std::size_t i = 0; i < kWarmUpCalls && SteadyClock::now() < warm_until; ++i) {
    call();
    rest(request);
  }
  Histogram latency;
  Nanoseconds thought{0};
  const auto cpu_before = cpu_times();
  const auto start = SteadyClock::now();
  for (std::size_t i = 0; i < request.calls; ++i) {
    const auto before = SteadyClock::now();
    if (before - start >= request.time) break;
    call();
    latency.add(SteadyClock::now() - before);
    thought += rest(request);
  }
  const auto wall = SteadyClock::now() - start;
  const auto cpu = cpu_times();
  const auto calls = static_cast<double>(std::max<std::uint64_t>(latency.count(), 1));
  Line line = begin(request);
  line.add("floats", std::uint64_t{request.floats}).add("think_us", microseconds(request.think));
  line.add("rest", std::string(request.asleep ? "sleep" : "compute"));
  line.add("calls", latency.count()).add("wall_s", static_cast<double>(wall.count()) / 1e9);
  line.add("p50_us", latency.quantile_us(0.5)).add("p99_us", latency.quantile_us(0.99));
  line.add("p999_us", latency.quantile_us(0.999)).add("mean_us", latency.mean_us());
  line.add("cpu_own_us", microseconds(cpu.own - cpu_before.own - thought) / calls);
  line.add("cpu_peer_us", microseconds(cpu.peer - cpu_before.peer) / calls);
  return line.add_json("histogram", latency.to_json());
}

Line Rig::pipelined(const Request& request, const std::function<void(std::size_t)>& submit,
                    const std::function<void(std::size_t)>& wait) const {
  const auto cpu_before = cpu_times();
  const auto start = SteadyClock::now();
  for (std::size_t slot = 0; slot < request.window; ++slot) submit(slot);
  std::uint64_t done = 0;
  std::size_t slot = 0;
  // The clock is read once per window, because at a million calls a second reading it would distort the measurement.
  while (slot != 0 || (done < request.calls && SteadyClock::now() - start < request.time)) {
    wait(slot);
    ++done;
    submit(slot);
    slot = (slot + 1) % request.window;
  }
  for (slot = 0; slot < request.window; ++slot) {
    wait(slot);
    ++done;
  }
  const auto wall = SteadyClock::now() - start;
  const auto cpu = cpu_times();
  const double seconds = static_cast<double>(wall.count()) / 1e9;
  Line line = begin(request);
  line.add("floats", std::uint64_t{request.floats}).add("window", std::uint64_t{request.window});
  line.add("calls", done).add("wall_s", seconds).add("calls_per_s", static_cast<double>(done) / seconds);
  line.add("cpu_own_us", microseconds(cpu.own - cpu_before.own) / static_cast<double>(done));
  return line.add("cpu_peer_us", microseconds(cpu.peer - cpu_before.peer) / static_cast<double>(done));
}

Line Rig::idle(const Request& request) const {
  const auto cpu_before = cpu_times();
  const auto start = SteadyClock::now();
  std::this_thread::sleep_for(request.time);
  const double wall = microseconds(SteadyClock::now() - start);
  const auto cpu = cpu_times();
  Line line = begin(request);
  line.add("wall_s", wall / 1e6).add("own_percent", 100.0 * microseconds(cpu.own - cpu_before.own) / wall);
  return line.add("peer_percent", 100.0 * microseconds(cpu.peer - cpu_before.peer) / wall);
}

int Rig::serve(const std::map<std::string, Measure>& measures) const {
  std::string names;
  for (const auto& [name, measure] : measures) names += (names.empty() ? "" : " ") + name;
  std::string peers;
  for (const pid_t peer : peers_) peers += (peers.empty() ? "" : ",") + std::to_string(peer);
  Line ready;
  ready.add("side", side_).add("ready", names);
  ready.add("pid", static_cast<std::uint64_t>(getpid())).add_json("peers", "[" + peers + "]");
  std::cout << ready.to_string() << std::endl;
  for (std::string text; std::getline(std::cin, text);) {
    const auto request = parse_request(text);
    const auto found = request ? measures.find(request->measure) : measures.end();
    if (found == measures.end()) {
      const std::string why = request ? "unknown measure " + request->measure : request.error().text();
      std::cout << Line().add("side", side_).add("error", why).to_string() << std::endl;
      return 2;
    }
    std::cout << found->second(*request).to_string() << std::endl;
  }
  return 0;
}

}  // namespace caftan::bench
