/// `Layout`: which processes a model has, of which classes, in which groups, and in which partition each of them is. It
/// is the same at all partitions, and holds no objects.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "caftan/sim/lp_class.hpp"
#include "caftan/sim/lp_id.hpp"

namespace caftan::sim {

/// Threads: filled by one, then read by any.
class Layout {
 public:
  /// The most classes and the most event types of a model.
  static constexpr std::size_t kMost = 255;
  /// The type of an event; its position is what events carry.
  struct EventType {
    std::uint64_t hash;
    std::string_view name;
  };
  /// Processes of one class with consecutive ids.
  struct Range {
    std::uint64_t first;
    std::uint64_t count;
    std::uint32_t type;  ///< position of the class
  };

  /// What the config says of a moment of the run.
  struct Plan {
    Time at;
    std::string what;
  };

  // ---- filling it, by Builder
  void set_lookahead(Result<Time> least);
  void begin_group();
  /// Returns the first id.
  std::uint64_t add(const LpClass& type, std::uint64_t count);
  void fail(Error error);
  void warn(std::string text) { warnings_.push_back(std::move(text)); }
  void plan(Plan plan) { plans_.push_back(std::move(plan)); }

  /// Distributes the groups: consecutive ones to each partition, processes as evenly as groups allow.
  /// Errors: the first one of the model; bad_arguments (no process, too many).
  Result<void> place(std::uint32_t partitions);

  // ---- reading it
  std::uint64_t size() const noexcept { return size_; }
  /// Returns how many groups there are.
  std::uint64_t groups() const noexcept { return group_of_.empty() ? size_ : groups_; }
  /// Returns the lookahead; kNever: groups do not send to each other.
  Time lookahead() const noexcept { return lookahead_; }
  const std::vector<const LpClass*>& classes() const noexcept { return classes_; }
  const std::vector<EventType>& event_types() const noexcept { return event_types_; }
  const std::vector<Range>& ranges() const noexcept { return ranges_; }
  /// Returns the position of an event type; nullopt if no class handles it.
  std::optional<std::uint8_t> position_of(std::uint64_t event) const noexcept {
    for (std::size_t i = 0; i < event_types_.size(); ++i) {
      if (event_types_[i].hash == event) return static_cast<std::uint8_t>(i);
    }
    return std::nullopt;
  }
  /// Precondition of these: the id is below size().
  const LpClass& class_of(std::uint32_t id) const noexcept { return *classes_[type_of(id)]; }
  std::uint32_t type_of(std::uint32_t id) const noexcept;
  std::uint32_t group_of(std::uint32_t id) const noexcept { return group_of_.empty() ? id : group_of_[id]; }
  /// Returns the partition of a process. Precondition: placed.
  std::uint32_t partition_of(std::uint32_t id) const noexcept;
  /// Returns how many partitions there are; 0 before `place`.
  std::uint32_t partitions() const noexcept {
    return static_cast<std::uint32_t>(bounds_.empty() ? 0 : bounds_.size() - 1);
  }
  /// Returns the first id of a partition; of the one behind the last: size().
  std::uint64_t first_of(std::uint32_t partition) const noexcept { return bounds_[partition]; }
  /// Returns a hash of classes, event types, ranges, groups and lookahead: two models that differ in them have another
  /// one.
  std::uint64_t digest() const noexcept;
  /// Returns what the model or its placement has that is probably a mistake.
  const std::vector<std::string>& warnings() const noexcept { return warnings_; }
  const std::vector<Plan>& plans() const noexcept { return plans_; }
  const std::optional<Error>& failure() const noexcept { return failure_; }
  /// Returns "LP 7 (Queue)".
  std::string name_of(std::uint64_t id) const;

 private:
  std::uint32_t register_class(const LpClass& type);

  std::uint64_t size_ = 0;
  std::uint32_t groups_ = 0;
  bool is_in_group_ = false;
  Time lookahead_ = kNever;
  std::vector<const LpClass*> classes_;
  std::vector<EventType> event_types_;
  std::vector<Range> ranges_;
  std::vector<std::uint32_t> group_of_;  // by id; empty: each process is its own group
  std::vector<std::uint64_t> bounds_;    // first id of each partition, and size_
  std::optional<Error> failure_;
  std::vector<std::string> warnings_;
  std::vector<Plan> plans_;
};

}  // namespace caftan::sim
