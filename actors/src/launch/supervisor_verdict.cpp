// What a Supervisor says at the end: of what the run failed, whom it names, who was late.
#include <algorithm>
#include <memory>

#include "caftan/base/settings_io.hpp"
#include "caftan/wire/shortened.hpp"
#include "launch/supervisor.hpp"

namespace caftan::actors {
namespace {

constexpr int kBadFile = 2;
constexpr std::size_t kMostNames = 8;  // of stragglers

/// "agent: peer_down: observer-0: ...": who says it, then the error without naming the same worker twice.
std::string in_words_of(const std::string& worker, const Error& error) {
  if (error.worker() != worker) return worker + ": " + error.message();
  std::shared_ptr<const Error> cause;
  if (error.cause()) cause = std::make_shared<const Error>(*error.cause());
  return worker + ": " + Error(error.code(), {}, error.text(), std::move(cause)).message();
}

/// As other hosts and processes are told. Less than any limits.message.
Error told(const Error& error) {
  const Error brief = wire::shortened(error, 320);
  if (brief.code() != Errc::shut_down) return brief;
  std::shared_ptr<const Error> cause;
  if (brief.cause()) cause = std::make_shared<const Error>(*brief.cause());
  return {Errc::peer_down, brief.worker(), brief.text(), std::move(cause)};  // shut_down is a good-bye in good order
}

}  // namespace

bool Supervisor::is_echo(const Error& error) {
  for (const Error* at = &error; at; at = at->cause()) {
    if (at->code() == Errc::peer_down || at->code() == Errc::peer_unreachable || at->code() == Errc::shut_down) {
      return true;
    }
  }
  return false;
}

Supervisor::Worker::Late Supervisor::lateness(const Worker& worker) const {
  if (worker.left || !worker.came) return Worker::Late::no;  // it was not asked before it came
  const bool is_asked = options_.heartbeat != Duration::zero();
  if (is_asked && pulses_[static_cast<std::size_t>(worker.is.process)].answers < asked_)
    return Worker::Late::unanswered;
  return worker.is.drives && !worker.returned ? Worker::Late::running : Worker::Late::leaving;
}

std::string Supervisor::stragglers() const {
  using Late = Worker::Late;
  const auto are = [this](Late late) {
    return std::ranges::any_of(workers_, [late](const Worker& w) { return w.late == late; });
  };
  const Late named = are(Late::unanswered) ? Late::unanswered : are(Late::running) ? Late::running : Late::leaving;
  std::string names;
  std::size_t count = 0;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].late != named || i == dead_) continue;
    if (++count <= kMostNames) names += (names.empty() ? "" : ", ") + workers_[i].is.name;
  }
  if (count == 0) return {};
  if (count > kMostNames) names += " and " + std::to_string(count - kMostNames) + " more";
  const std::string what = named == Late::unanswered ? " had not answered"
                           : named == Late::running  ? " had not returned from run()"
                                                     : " had not left";
  return names + what +
         (killed_at_once_ ? " when the second Ctrl-C came"
                          : " within " + format_duration(options_.stop_timeout.count()) + " (run.stop_timeout)") +
         (count == 1 ? " and was killed" : " and were killed");
}

Supervisor::Cause Supervisor::cause() const {
  if (general_) return Cause::general;
  if (dead_ && (!failure_ || is_echo(failure_->error))) return Cause::death;
  return failure_ ? Cause::failure : Cause::none;
}

Error Supervisor::reason() const {
  if (interrupted_first_) return {Errc::cancelled, "the run was interrupted"};
  switch (cause()) {
    case Cause::none:
      break;
    case Cause::general:
      return told(*general_);
    case Cause::death: {
      const std::string& name = workers_[*dead_].is.name;
      return {Errc::peer_down, name, name + " " + death_text_};
    }
    case Cause::failure:
      return told(failure_->error.at(workers_[failure_->worker].is.name));
  }
  return {};
}

Verdict Supervisor::verdict() const {
  if (interrupted_first_) return {.outcome = Verdict::Outcome::interrupted, .exit_code = 130};
  Verdict verdict{.outcome = Verdict::Outcome::failure, .exit_code = 1};
  switch (cause()) {
    case Cause::none:
      return {};
    case Cause::general:
      verdict.error = general_->text();
      break;
    case Cause::death:
      verdict.blame = dead_;
      verdict.error = workers_[*dead_].is.name + " " + death_text_;
      if (failure_) {
        const std::string& teller = workers_[failure_->worker].is.name;
        // That it is lost need not be said twice.
        const bool is_same = failure_->worker == *dead_ && failure_->error.worker() == teller;
        if (!is_same) verdict.error += "; " + in_words_of(teller, failure_->error);
      }
      break;
    case Cause::failure: {
      verdict.blame = failure_->worker;
      const Error& error = failure_->error;
      const bool is_own = error.code() == Errc::timeout && error.worker().empty();  // of check_start or check_made
      verdict.error = is_own ? error.text() : in_words_of(workers_[failure_->worker].is.name, error);
      // Members that were started from different files are a matter of the command line.
      if (failure_->at_start && error.code() == Errc::invalid_config) verdict.exit_code = kBadFile;
      break;
    }
  }
  return verdict;
}

}  // namespace caftan::actors
