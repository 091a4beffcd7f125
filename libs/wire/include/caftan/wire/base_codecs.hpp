/// How ids, `Error` and `Result` travel. Include archive.hpp instead.
#pragma once

#include "caftan/base/ids.hpp"
#include "caftan/base/result.hpp"
#include "caftan/wire/std_codecs.hpp"

namespace caftan::wire {

template <>
struct Codec<WorkerId> {
  static void save(OutArchive& to, const WorkerId& id) { to << id.value; }
  static void load(InArchive& from, WorkerId& id) { from >> id.value; }
};
template <>
struct Codec<Incarnation> {
  static void save(OutArchive& to, const Incarnation& id) { to << id.value; }
  static void load(InArchive& from, Incarnation& id) { from >> id.value; }
};
template <>
struct Codec<WorkerLife> {
  static void save(OutArchive& to, const WorkerLife& life) { to << life.id << life.incarnation; }
  static void load(InArchive& from, WorkerLife& life) { from >> life.id >> life.incarnation; }
};
template <>
struct Codec<CallId> {
  static void save(OutArchive& to, const CallId& id) { to << id.value; }
  static void load(InArchive& from, CallId& id) { from >> id.value; }
};
template <class Tag>
struct Codec<GlobalId<Tag>> {
  static void save(OutArchive& to, const GlobalId<Tag>& id) { to << id.worker << id.incarnation << id.number; }
  static void load(InArchive& from, GlobalId<Tag>& id) { from >> id.worker >> id.incarnation >> id.number; }
};

/// An error is its code, worker, text and cause. If there are more than 16 causes, the first 15 and the innermost are
/// written.
template <>
struct Codec<Error> {
  static constexpr std::size_t kMostCauses = 16;
  static void save(OutArchive& to, const Error& error);
  static void load(InArchive& from, Error& error);
};

/// Returns the content of section `error_kinds`: the kinds of `error` and its causes, in the order in which these are
/// saved; nothing when none has one.
Bytes encode_kinds(const Error& error);
/// Gives `error` and its causes the kinds that encode_kinds wrote.
/// Errors: malformed_payload (more kinds than errors, a kind that is too long, bytes left over).
Result<void> add_kinds(Error& error, ByteView kinds);

template <class T>
struct Codec<Result<T>> {
  static void save(OutArchive& to, const Result<T>& result) {
    to << result.has_value();
    if (result) {
      to << *result;
    } else {
      to << result.error();
    }
  }
  static void load(InArchive& from, Result<T>& result) {
    bool has_value = false;
    from >> has_value;
    if (has_value) {
      T value = detail::blank<T>();
      from >> value;
      result = std::move(value);
    } else {
      Error error;
      from >> error;
      result = std::move(error);
    }
  }
};
template <>
struct Codec<Result<void>> {
  static void save(OutArchive& to, const Result<void>& result);
  static void load(InArchive& from, Result<void>& result);
};

}  // namespace caftan::wire
