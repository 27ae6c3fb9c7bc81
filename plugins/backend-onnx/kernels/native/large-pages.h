// Large pages (2 MB) of memory that is read from end to end in each step, weights and keys and values:
// a thread waits for the addresses of small ones at every 4 kB.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace rakit {

// Asks Linux for them. Where it can't, nothing changes.
inline void advise_large_pages(void* start, size_t bytes) {
  constexpr size_t page = 4096;
  const size_t before = reinterpret_cast<uintptr_t>(start) % page;
  madvise(static_cast<char*>(start) - before, before + bytes, MADV_HUGEPAGE);
}

}  // namespace rakit
