#include "body_index.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace caftan::autograd {

BodyIndex::BodyIndex(std::vector<CodeSpan> bodies) : bodies_(std::move(bodies)) {
  std::unordered_map<std::uint64_t, std::size_t> count;
  for (const CodeSpan& body : bodies_) ++count[body.key];
  std::erase_if(bodies_, [&count](const CodeSpan& body) { return count[body.key] > 1; });
  std::sort(bodies_.begin(), bodies_.end(), [](const CodeSpan& a, const CodeSpan& b) {
    return std::tie(a.thread_id, a.first, b.last) < std::tie(b.thread_id, b.first, a.last);
  });
  outer_.reserve(bodies_.size());
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    const CodeSpan& body = bodies_[i];
    while (!open.empty() &&
           (bodies_[open.back()].thread_id != body.thread_id || bodies_[open.back()].last <= body.first)) {
      open.pop_back();
    }
    outer_.push_back(open.empty() ? i : open.back());
    open.push_back(i);
  }
}

bool BodyIndex::is_one_with(std::uint64_t thread_id, std::uint64_t first, std::uint64_t last) const {
  if (bodies_.size() != 1) return false;
  const CodeSpan& body = bodies_.front();
  return body.thread_id == thread_id && body.first <= first && last < body.last;
}

std::optional<std::uint64_t> BodyIndex::find(std::uint64_t thread_id, std::uint64_t sequence_nr) const {
  auto after =
      std::upper_bound(bodies_.begin(), bodies_.end(), std::tie(thread_id, sequence_nr),
                       [](const auto& at, const CodeSpan& body) { return at < std::tie(body.thread_id, body.first); });
  if (after == bodies_.begin()) return std::nullopt;
  auto at = static_cast<std::size_t>(after - bodies_.begin()) - 1;
  while (bodies_[at].thread_id == thread_id && bodies_[at].last <= sequence_nr) {
    if (outer_[at] == at) return std::nullopt;
    at = outer_[at];
  }
  if (bodies_[at].thread_id != thread_id) return std::nullopt;
  return bodies_[at].key;
}

}  // namespace caftan::autograd
