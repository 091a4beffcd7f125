#include "caftan/sim/internal/payload_store.hpp"

#include <cstring>
#include <new>

namespace caftan::sim {
namespace {

constexpr std::size_t kBlockHead = 8;  // size and class of a block
constexpr std::size_t kSlab = 64 * 1024;

constexpr std::size_t block_size(std::size_t position) { return std::size_t{32} << position; }

}  // namespace

PayloadStore::~PayloadStore() {
  for (Block* const block : single_) ::operator delete(block);
}

void PayloadStore::put(Event& event, wire::ByteView bytes) {
  if (bytes.size() <= Event::kInline) {
    event.size = bytes.size();
    event.payload = 0;
    if (!bytes.empty()) std::memcpy(&event.payload, bytes.data(), bytes.size());
    return;
  }
  std::size_t position = 0;
  while (position < kClasses && bytes.size() + kBlockHead > block_size(position)) ++position;
  Block* block = nullptr;
  if (position < kClasses) {
    block = take(position);
  } else {
    // The first bytes hold the block's place in the list of those by themselves.
    block = static_cast<Block*>(::operator new(sizeof(Block) + bytes.size()));
    const std::size_t place = single_.size();
    single_.push_back(block);
    std::memcpy(reinterpret_cast<std::byte*>(block) + kBlockHead, &place, sizeof place);
  }
  block->size = static_cast<std::uint32_t>(bytes.size());
  block->position = static_cast<std::uint32_t>(position);
  std::byte* const to = reinterpret_cast<std::byte*>(block) + (position < kClasses ? kBlockHead : sizeof(Block));
  std::memcpy(to, bytes.data(), bytes.size());
  event.size = Event::kStored;
  event.payload = reinterpret_cast<std::uintptr_t>(block);
  ++count_;
}

wire::ByteView PayloadStore::view(const Event& event) noexcept {
  if (event.size != Event::kStored) return {reinterpret_cast<const std::byte*>(&event.payload), event.size};
  const auto* const block = reinterpret_cast<const Block*>(event.payload);
  const auto* const bytes = reinterpret_cast<const std::byte*>(block);
  return {bytes + (block->position < kClasses ? kBlockHead : sizeof(Block)), block->size};
}

void PayloadStore::release_block(std::uint64_t payload) noexcept {
  auto* const block = reinterpret_cast<Block*>(payload);
  --count_;
  if (block->position < kClasses) {
    block->next = free_[block->position];
    free_[block->position] = block;
    return;
  }
  std::size_t place = 0;
  std::memcpy(&place, reinterpret_cast<std::byte*>(block) + kBlockHead, sizeof place);
  single_[place] = single_.back();
  std::memcpy(reinterpret_cast<std::byte*>(single_[place]) + kBlockHead, &place, sizeof place);
  single_.pop_back();
  ::operator delete(block);
}

PayloadStore::Block* PayloadStore::take(std::size_t position) {
  if (!free_[position]) {
    slabs_.push_back(std::make_unique_for_overwrite<std::byte[]>(kSlab));
    for (std::size_t at = 0; at < kSlab; at += block_size(position)) {
      auto* const block = reinterpret_cast<Block*>(slabs_.back().get() + at);
      block->next = free_[position];
      free_[position] = block;
    }
  }
  Block* const block = free_[position];
  free_[position] = block->next;
  return block;
}

}  // namespace caftan::sim
