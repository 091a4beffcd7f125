/// What is attached to an archive whose bytes are all that is kept of a value, as for the events of a simulation:
/// codecs of types that otherwise travel beside the bytes, such as tensors, write the whole value into them.
#pragma once

namespace caftan::wire {

/// Companion of an OutArchive and of the InArchive that reads its bytes.
struct SelfContained {};

}  // namespace caftan::wire
