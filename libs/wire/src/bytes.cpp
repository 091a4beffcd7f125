#include "caftan/wire/bytes.hpp"

template class std::vector<std::byte, caftan::wire::UninitializedAllocator<std::byte>>;
