#include "caftan/run/internal/failure_reasons.hpp"

#include <memory>

#include "caftan/wire/internal/shortened.hpp"

namespace caftan::run {
namespace {

constexpr int kBadFile = 2;

/// "agent: peer_down: observer-0: ...": the reporting worker, then the error, without naming one worker twice.
std::string prefixed(const std::string& worker, const Error& error) {
  if (error.worker() != worker) return worker + ": " + error.message();
  std::shared_ptr<const Error> cause;
  if (error.cause()) cause = std::make_shared<const Error>(*error.cause());
  return worker + ": " + Error(error.code(), {}, error.text(), std::move(cause)).message();
}

/// The error as it is sent to other hosts and processes. Shorter than any limits.message.
Error for_other_hosts(const Error& error) {
  const Error brief = wire::shortened(error, wire::kBriefText);
  if (brief.code() != Errc::shut_down) return brief;
  std::shared_ptr<const Error> cause;
  if (brief.cause()) cause = std::make_shared<const Error>(*brief.cause());
  // To another host, shut_down would mean a good-bye in good order.
  return {Errc::peer_down, brief.worker(), brief.text(), std::move(cause)};
}

}  // namespace

bool FailureReasons::is_echo(const Error& error) {
  for (const Error* at = &error; at; at = at->cause()) {
    if (at->code() == Errc::peer_down || at->code() == Errc::peer_unreachable || at->code() == Errc::shut_down) {
      return true;
    }
  }
  return false;
}

void FailureReasons::add(std::size_t worker, const Error& error, bool at_start) {
  if (!failure_ || (has_echo() && !is_echo(error))) failure_ = Failure{worker, error, at_start};
}

void FailureReasons::add_death(std::size_t worker, std::string text, bool on_its_own) {
  if (dead_) return;
  dead_ = worker;
  death_is_first_ = on_its_own || !failure_ || has_echo();
  death_text_ = std::move(text);
}

void FailureReasons::add_general(const Error& error) {
  if (!general_) general_ = error;
}

FailureReasons::Cause FailureReasons::cause() const {
  if (general_) return Cause::general;
  const bool comes_first = death_is_first_ && failure_ && failure_->worker != *dead_;
  if (dead_ && (!failure_ || has_echo() || comes_first)) return Cause::death;
  return failure_ ? Cause::failure : Cause::none;
}

Error FailureReasons::reason() const {
  switch (cause()) {
    case Cause::none:
      break;
    case Cause::general:
      return for_other_hosts(*general_);
    case Cause::death: {
      const std::string& name = names_[*dead_];
      return {Errc::peer_down, name, name + " " + death_text_};
    }
    case Cause::failure:
      return for_other_hosts(failure_->error.at(names_[failure_->worker]));
  }
  return {};
}

Verdict FailureReasons::verdict() const {
  Verdict verdict{.outcome = Verdict::Outcome::failure, .exit_code = 1, .code = reason().code()};
  switch (cause()) {
    case Cause::none:
      return {};
    case Cause::general:
      verdict.error = general_->text();
      break;
    case Cause::death:
      verdict.blame = dead_;
      verdict.death = death_text_;
      verdict.error = names_[*dead_] + " " + death_text_;
      if (failure_) {
        const std::string& reporter = names_[failure_->worker];
        // The loss is named once.
        const bool is_same = failure_->worker == *dead_ && failure_->error.worker() == reporter;
        if (!is_same) verdict.error += "; " + prefixed(reporter, failure_->error);
      }
      break;
    case Cause::failure: {
      verdict.blame = failure_->worker;
      const Error& error = failure_->error;
      const bool is_own = error.code() == Errc::timeout && error.worker().empty();  // of a Supervisor
      verdict.error = is_own ? error.text() : prefixed(names_[failure_->worker], error);
      // Files that differ between members are a mistake of the user, so the exit code is that of a bad file.
      if (failure_->at_start && error.code() == Errc::invalid_config) verdict.exit_code = kBadFile;
      break;
    }
  }
  return verdict;
}

}  // namespace caftan::run
