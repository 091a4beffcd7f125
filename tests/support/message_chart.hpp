/// Draws what really went between the Workers of a cluster as a Mermaid sequence diagram: calls and replies of
/// autograd contexts and the messages of backward passes, in the order in which they left.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "caftan/autograd/internal/call_section.hpp"
#include "caftan/testing/network.hpp"
#include "pass_frames.hpp"

namespace caftan::test {

/// Threads: those of the stepped executor, one at a time. Recorded messages are named m1, m2, ... in the order in which
/// they leave.
class MessageChart {
 public:
  /// @param workers  their names, in the order of the columns, which are A, B, ...
  MessageChart(testing::Network& net, const std::vector<std::string>& workers) : net_(net), workers_(workers) {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      chart_ += "  participant " + letter(i) + " as " + letter(i) + " (" + workers_[i] + ")\n";
      for (std::size_t j = 0; j < workers_.size(); ++j) {
        if (i == j) continue;
        net_.link(workers_[i], workers_[j]).set_filter([this, i, j](const testing::Frame& frame) {
          if (const std::string text = describe(frame); !text.empty()) {
            chart_ += "  " + letter(i) + "->>" + letter(j) + ": " + text + "\n";
          }
          return true;
        });
      }
    }
  }
  MessageChart(const MessageChart&) = delete;
  MessageChart& operator=(const MessageChart&) = delete;
  ~MessageChart() { net_.filter_all(nullptr); }

  void note(std::size_t worker, const std::string& text) {
    chart_ += "  Note over " + letter(worker) + ": " + text + "\n";
  }
  /// Returns the chart as a Mermaid block of a page.
  std::string markdown() const { return "```mermaid\n" + chart_ + "```\n"; }

 private:
  static std::string letter(std::size_t worker) { return {static_cast<char>('A' + worker)}; }

  std::string describe(const testing::Frame& frame) {
    if (const auto message = pass_message(frame)) {
      return std::visit([this](const auto& m) { return describe(m); }, *message);
    }
    const auto section = autograd_section(frame);
    if (!section) return {};
    std::string text = frame.header.kind == wire::FrameKind::response ? "response" : "call";
    if (section->message) text += ", records " + name(section->message);
    return text;
  }

  static std::optional<autograd::CallSection> autograd_section(const testing::Frame& frame) {
    wire::SectionReader reader(frame.payload().first(frame.header.sections_size));
    while (const auto section = reader.next().value()) {
      if (section->type == wire::SectionType::autograd) {
        return wire::decode<autograd::CallSection>(section->content).value();
      }
    }
    return {};
  }

  std::string describe(const autograd::Mark& m) { return "Mark " + names(m.messages); }
  std::string describe(const autograd::Report& m) {
    return "Report done " + names(m.done) + (m.spawned.empty() ? "" : ", spawned " + names(m.spawned)) +
           (m.missing.empty() ? "" : ", missing " + names(m.missing)) + (m.drained ? ", drained" : "");
  }
  std::string describe(const autograd::Grad& m) { return "Grad " + name(m.message); }
  std::string describe(const autograd::Decide& m) { return with("Decide", m.outcome); }
  std::string describe(const autograd::Decided& m) { return with("Decided", m.outcome); }
  std::string describe(const autograd::End& m) { return with("End", m.outcome); }
  std::string describe(const autograd::Fail& m) { return with("Fail", Result<void>(m.error)); }
  template <class Message>
  std::string describe(const Message& m) {
    return name_of(autograd::PassMessage(m));
  }

  static std::string with(const std::string& message, const Result<void>& outcome) {
    return message + " " + (outcome ? "ok" : std::string(to_string(outcome.error().code())));
  }
  std::string name(const AutogradMessageId& message) {
    if (!message) return "roots";
    return names_.emplace(message, "m" + std::to_string(names_.size() + 1)).first->second;
  }
  std::string names(const std::vector<AutogradMessageId>& messages) {
    std::string text;
    for (const AutogradMessageId& message : messages) text += (text.empty() ? "" : " ") + name(message);
    return text;
  }

  testing::Network& net_;
  const std::vector<std::string> workers_;
  std::map<AutogradMessageId, std::string> names_;
  std::string chart_ = "sequenceDiagram\n";
};

}  // namespace caftan::test
