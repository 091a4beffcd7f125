#include "span_index.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace caftan::autograd {

SpanIndex::SpanIndex(std::vector<CodeSpan> spans) : spans_(std::move(spans)) {
  outer_.reserve(spans_.size());
  if (spans_.size() <= 1) {
    outer_.assign(spans_.size(), 0);
    return;
  }
  std::unordered_map<std::uint64_t, std::size_t> count;
  for (const CodeSpan& span : spans_) ++count[span.key];
  std::erase_if(spans_, [&count](const CodeSpan& span) { return count[span.key] > 1; });
  std::sort(spans_.begin(), spans_.end(), [](const CodeSpan& a, const CodeSpan& b) {
    return std::tie(a.thread_id, a.first, b.last) < std::tie(b.thread_id, b.first, a.last);
  });
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    const CodeSpan& span = spans_[i];
    while (!open.empty() &&
           (spans_[open.back()].thread_id != span.thread_id || spans_[open.back()].last <= span.first)) {
      open.pop_back();
    }
    outer_.push_back(open.empty() ? i : open.back());
    open.push_back(i);
  }
}

bool SpanIndex::is_one_with(std::uint64_t thread_id, std::uint64_t first, std::uint64_t last) const {
  if (spans_.size() != 1) return false;
  const CodeSpan& span = spans_.front();
  return span.thread_id == thread_id && span.first <= first && last < span.last;
}

std::optional<std::uint64_t> SpanIndex::find(std::uint64_t thread_id, std::uint64_t sequence_nr) const {
  auto after =
      std::upper_bound(spans_.begin(), spans_.end(), std::tie(thread_id, sequence_nr),
                       [](const auto& at, const CodeSpan& span) { return at < std::tie(span.thread_id, span.first); });
  if (after == spans_.begin()) return std::nullopt;
  auto at = static_cast<std::size_t>(after - spans_.begin()) - 1;
  while (spans_[at].thread_id == thread_id && spans_[at].last <= sequence_nr) {
    if (outer_[at] == at) return std::nullopt;
    at = outer_[at];
  }
  if (spans_[at].thread_id != thread_id) return std::nullopt;
  return spans_[at].key;
}

}  // namespace caftan::autograd
