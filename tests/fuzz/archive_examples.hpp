/// The types that the archive's fuzz target decodes, and a value of each: its corpus, and the pin of the format.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "caftan/wire/archive.hpp"

namespace caftan::wire {

struct FuzzTree {
  std::int32_t value = 0;
  std::vector<FuzzTree> children;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& value& children;
  }
};

/// The types in the order of the first byte of an input. Add types only at the end, because the corpus holds their
/// numbers.
using FuzzTypes =
    std::tuple<std::vector<std::string>, std::map<std::string, std::vector<double>>, FuzzTree, Result<std::string>,
               std::tuple<bool, std::int64_t, std::optional<RRefId>, std::variant<std::monostate, float, std::string>>,
               std::vector<std::vector<std::vector<std::uint8_t>>>, std::unordered_map<std::int32_t, std::set<bool>>,
               std::tuple<std::list<std::u16string>, std::vector<bool>, std::deque<std::array<std::int16_t, 3>>>>;

inline std::vector<Bytes> archive_examples() {
  FuzzTree tree{1, {FuzzTree{2, {FuzzTree{3, {}}}}, FuzzTree{4, {}}}};
  const Error cause(Errc::timeout, "worker2", "late");
  const Result<std::string> failed(Error(Errc::peer_down, "worker1", "gone", std::make_shared<const Error>(cause)));
  const RRefId id{WorkerId{1}, Incarnation{2}, 3};
  const std::tuple<bool, std::int64_t, std::optional<RRefId>, std::variant<std::monostate, float, std::string>> mixed{
      true, -7, id, "text"};
  return {
      *encode(std::vector<std::string>{"", "a", std::string(200, 'b')}),
      *encode(std::map<std::string, std::vector<double>>{{"k", {0.5, -1}}, {"l", {}}}),
      *encode(tree),
      *encode(failed),
      *encode(mixed),
      *encode(std::vector<std::vector<std::vector<std::uint8_t>>>{{{1, 2}, {}}, {}}),
      *encode(std::unordered_map<std::int32_t, std::set<bool>>{{5, {false, true}}}),
      *encode(std::tuple(std::list<std::u16string>{u"xy"}, std::vector<bool>{true, false},
                         std::deque<std::array<std::int16_t, 3>>{{1, 2, 3}})),
  };
}

}  // namespace caftan::wire
