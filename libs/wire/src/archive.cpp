#include "caftan/wire/archive.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <vector>

#include "caftan/base/internal/what_of.hpp"

namespace caftan::wire {

void OutArchive::grow(std::size_t size) {
  constexpr std::size_t kFirst = 256;
  const std::size_t used = position();
  extend(to_, std::max({used + size, 2 * to_.size(), kFirst}) - to_.size());
  at_ = to_.data() + used;
  end_ = to_.data() + to_.size();
}

void OutArchive::too_deep() { throw EncodeError(Error(Errc::unsupported, "the value is nested deeper than 64")); }

std::uint64_t InArchive::load_long_number() {
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = std::to_integer<std::uint64_t>(take(1)[0]);
    // Each number has one form: no number of ten bytes above 64 bits, no zero as the last of several bytes.
    if ((shift == 63 && byte > 1) || (shift > 0 && byte == 0)) break;
    number |= (byte & 0x7f) << shift;
    if (byte < 0x80) return number;
  }
  throw DecodeError("bad length");
}

void InArchive::truncated() { throw DecodeError("truncated"); }
void InArchive::absurd_count() { throw DecodeError("a length exceeds what is left"); }
void InArchive::bad_bool() { throw DecodeError("a bool is neither 0 nor 1"); }
void InArchive::bad_enum() { throw DecodeError("an enum has no such number"); }
void InArchive::newer_class() { throw DecodeError("written by a newer version of its class"); }
void InArchive::too_deep() { throw DecodeError("nested deeper than 64"); }

namespace detail {

void Companions::full() noexcept { std::terminate(); }

Error encode_failure() {
  try {
    throw;
  } catch (const EncodeError& failure) {
    return failure.error();
  } catch (const std::bad_alloc&) {
    return Error(Errc::limit_exceeded, "no memory to encode the value");
  } catch (const std::exception& failure) {
    return Error(Errc::unsupported, std::string("serialize threw: ") + base::what_of(failure));
  } catch (...) {
    return Error(Errc::unsupported, "serialize threw");
  }
}

Error decode_failure(std::size_t position) {
  const auto at = [position](std::string text) { return std::move(text) + " at byte " + std::to_string(position); };
  try {
    throw;
  } catch (const DecodeError& failure) {
    return Error(failure.code(), at(failure.what()));
  } catch (const std::bad_alloc&) {
    return Error(Errc::limit_exceeded, at("no memory to decode the value"));
  } catch (const std::exception& failure) {
    return Error(Errc::malformed_payload, at(std::string("serialize threw: ") + base::what_of(failure)));
  } catch (...) {
    return Error(Errc::malformed_payload, at("serialize threw"));
  }
}

Error trailing_bytes(std::size_t position, std::size_t left) {
  return Error(Errc::malformed_payload, std::to_string(left) + " bytes left over at byte " + std::to_string(position));
}

}  // namespace detail

namespace {

/// Returns the causes that are saved: all, or the first ones and the innermost.
std::vector<const Error*> causes_of(const Error& error) {
  std::vector<const Error*> causes;
  for (const Error* cause = error.cause(); cause; cause = cause->cause()) {
    if (causes.size() == Codec<Error>::kMostCauses) causes.pop_back();  // the innermost says what happened
    causes.push_back(cause);
  }
  return causes;
}

}  // namespace

Bytes encode_kinds(const Error& error) {
  std::vector<std::string> kinds{error.kind()};
  for (const Error* cause : causes_of(error)) kinds.push_back(cause->kind());
  while (!kinds.empty() && kinds.back().empty()) kinds.pop_back();
  Bytes bytes;
  if (!kinds.empty()) OutArchive(bytes) << kinds;
  return bytes;
}

Result<void> add_kinds(Error& error, ByteView content) {
  const Result<std::vector<std::string>> kinds = decode<std::vector<std::string>>(content);
  if (!kinds) return kinds.error();
  std::vector<const Error*> lines = causes_of(error);
  lines.insert(lines.begin(), &error);
  const auto too_long = [](const std::string& kind) { return kind.size() > Error::kMostKind; };
  if (kinds->size() > lines.size() || std::any_of(kinds->begin(), kinds->end(), too_long)) {
    return Error(Errc::malformed_payload, "kinds of errors that are not there, or too long");
  }
  std::shared_ptr<const Error> cause;
  for (std::size_t i = lines.size(); i-- > 0;) {
    Error line(lines[i]->code(), lines[i]->worker(), lines[i]->text(), std::move(cause));
    if (i < kinds->size() && !(*kinds)[i].empty()) line = line.of_kind((*kinds)[i]);
    cause = std::make_shared<const Error>(std::move(line));
  }
  error = *cause;
  return {};
}

void Codec<Error>::save(OutArchive& to, const Error& error) {
  const std::vector<const Error*> causes = causes_of(error);
  to << error.code() << error.worker() << error.text();
  to.save_count(causes.size());
  for (const Error* cause : causes) to << cause->code() << cause->worker() << cause->text();
}

namespace {

struct Line {
  Errc code = Errc::ok;
  std::string worker;
  std::string text;
};

Line load_line(InArchive& from) {
  Line line;
  from >> line.code >> line.worker >> line.text;
  if (to_string(line.code) == "unknown") throw DecodeError("an error has no such code");
  return line;
}

}  // namespace

void Codec<Error>::load(InArchive& from, Error& error) {
  std::vector<Line> lines{load_line(from)};
  const std::size_t causes = from.load_count(3);
  if (causes > kMostCauses) throw DecodeError("too many causes of an error");
  for (std::size_t i = 0; i < causes; ++i) lines.push_back(load_line(from));
  std::shared_ptr<const Error> cause;
  for (std::size_t i = lines.size(); i-- > 1;) {
    cause = std::make_shared<const Error>(lines[i].code, std::move(lines[i].worker), std::move(lines[i].text), cause);
  }
  error = Error(lines[0].code, std::move(lines[0].worker), std::move(lines[0].text), std::move(cause));
}

void Codec<Result<void>>::save(OutArchive& to, const Result<void>& result) {
  to << result.has_value();
  if (!result) to << result.error();
}

void Codec<Result<void>>::load(InArchive& from, Result<void>& result) {
  bool has_value = false;
  from >> has_value;
  if (has_value) {
    result = {};
  } else {
    Error error;
    from >> error;
    result = std::move(error);
  }
}

}  // namespace caftan::wire
