/// Shortens errors that leave a process: the text of an exception can be of any length, that of a frame or a file
/// cannot.
#pragma once

#include <cstddef>

#include "caftan/base/error.hpp"

namespace caftan::wire {

/// How many bytes of text `shortened` may keep so that a message or packet with the error keeps every limit that a file
/// can set: the smallest limits.message is 1 KiB.
inline constexpr std::size_t kBriefText = 320;

/// Returns `error` with at most `text` bytes of text, and its causes with half as many each: the causes show whether
/// the error is only a consequence of another worker's end. Of many causes the first and the innermost are kept,
/// because the innermost says what happened. All of it takes less than 2 * text + 160 bytes and the names.
Error shortened(const Error& error, std::size_t text);

/// Returns `error` shortened so that its bytes, with those of its kinds as a section, are at most `most`: with 4096
/// bytes of text or less, or with nothing but its code and a text that fits.
Error fitting(const Error& error, std::size_t most);

/// Returns `error` in the form for peers without kKnowsErrorKinds: user_error becomes remote_exception.
Error without_kinds(const Error& error);

}  // namespace caftan::wire
