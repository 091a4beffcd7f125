#include "caftan/autograd/internal/messages.hpp"

#include "caftan/base/internal/overloaded.hpp"

namespace caftan::autograd {
namespace {

std::string ids(const std::vector<AutogradMessageId>& messages) {
  std::string text = "[";
  for (const AutogradMessageId& message : messages) {
    if (text.size() > 1) text += ' ';
    text += message ? to_string(message) : "roots";
  }
  return text + "]";
}

std::string outcome_text(const Result<void>& outcome) {
  return outcome ? " ok" : " failed: " + outcome.error().message();
}

}  // namespace

std::string to_string(const PassId& pass) { return to_string(pass.context) + "#" + std::to_string(pass.number.value); }

ContextId context_of(const PassMessage& message) {
  return std::visit(
      base::Overloaded{[](const PassOpen& m) { return m.context; }, [](const Refused& m) { return m.context; },
                       [](const Mark& m) { return m.header.pass.context; },
                       [](const Grad& m) { return m.header.pass.context; }, [](const Join& m) { return m.context; },
                       [](const Release& m) { return m.context; }, [](const auto& m) { return m.pass.context; }},
      message);
}

std::string to_string(const PassMessage& message) {
  return std::visit(
      base::Overloaded{
          [](const PassOpen& m) { return "PassOpen " + to_string(m.context); },
          [](const Granted& m) { return "Granted " + to_string(m.pass) + " decided " + to_string(m.decided); },
          [](const Refused& m) { return "Refused " + to_string(m.context) + ": " + m.error.message(); },
          [](const Mark& m) {
            return "Mark " + to_string(m.header.pass) + (m.header.keep ? " keep " : " ") + ids(m.messages);
          },
          [](const Report& m) {
            return "Report " + to_string(m.pass) + " done " + ids(m.done) + " spawned " + ids(m.spawned) +
                   (m.missing.empty() ? "" : " missing " + ids(m.missing)) + (m.drained ? " drained" : "");
          },
          [](const Grad& m) { return "Grad " + to_string(m.header.pass) + " " + to_string(m.message); },
          [](const Done& m) { return "Done " + to_string(m.pass); },
          [](const Fail& m) { return "Fail " + to_string(m.pass) + ": " + m.error.message(); },
          [](const Decide& m) { return "Decide " + to_string(m.pass) + outcome_text(m.outcome); },
          [](const Decided& m) { return "Decided " + to_string(m.pass) + outcome_text(m.outcome); },
          [](const Join& m) { return "Join " + to_string(m.context); },
          [](const End& m) { return "End " + to_string(m.pass) + outcome_text(m.outcome); },
          [](const Release& m) { return "Release " + to_string(m.context); }},
      message);
}

}  // namespace caftan::autograd
