// Threads that run one loop after another together, without being woken for each.
#pragma once
#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace rakit {

// Threads that wait for a condition: they look for a while whether it holds, then sleep.
class Sleepers {
 public:
  template <typename Condition>
  void await(const Condition& condition) {
    const auto end = std::chrono::steady_clock::now() + kAwake;
    do
      for (int i = 0; i < kLooks; i++) {
        if (condition()) return;
        _mm_pause();
      }
    while (std::chrono::steady_clock::now() < end);
    std::unique_lock lock(mutex_);
    sleeping_++;
    changed_.wait(lock, condition);
    sleeping_--;
  }

  // Wakes so many at most. What they wait for must be written before.
  void wake(size_t most) {
    if (sleeping_ == 0) return;
    // none is between its last look and its sleep then
    { std::lock_guard lock(mutex_); }
    for (size_t left = std::min<size_t>(most, sleeping_); left > 0; left--) changed_.notify_one();
  }

 private:
  // How long a thread looks before it sleeps: longer than most waits within a run. Eight streams of a
  // model of 135M called the kernel 30,000 times a second to sleep and to wake with 3 us.
  static constexpr std::chrono::microseconds kAwake{30};
  // Looks between two at the clock, with a pause of 10 to 140 cycles after each.
  static constexpr int kLooks = 16;

  alignas(64) std::atomic<size_t> sleeping_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
};

// One thread leads: it runs what stands between the loops, and takes part in them. Parts of a loop are
// claimed one by one, so no thread waits for one that has not come, or that does not get a core: it
// runs the parts itself, and waits only for those that are claimed.
class Team {
 public:
  using Each = void (*)(void* data, size_t part);
  static constexpr size_t kMostParts = 1 << 19;

  // Runs a loop of less than `kMostParts` parts, and returns when all have run. Called by the leader only.
  void loop(Each each, size_t parts, void* data) {
    each_ = each;
    data_ = data;
    done_ = 0;
    state_ = ++loops_ << (2 * kBits) | parts << kBits;
    // no more than find a part
    helpers_.wake(parts - 1);
    while (run_part()) {}
    leader_.await([&] { return done_.load() == parts; });
  }

  // Ends the team: `help` returns in all other threads. Called by the leader only.
  void end() {
    is_over_ = true;
    helpers_.wake(SIZE_MAX);
  }

  // Runs parts until the leader ends it.
  void help() {
    while (!is_over_) {
      const uint64_t seen = state_.load();
      if (has_parts(seen)) run_part();
      else helpers_.await([&] { return is_over_ || state_.load() != seen; });
    }
  }

 private:
  // The state is the number of the loop, how many parts it has, and the next one to be claimed, so that
  // a claim is of the loop that it is for.
  static constexpr unsigned kBits = 20;
  static constexpr uint64_t kMask = (uint64_t{1} << kBits) - 1;

  static bool has_parts(uint64_t state) { return (state & kMask) < (state >> kBits & kMask); }

  // Returns false when all parts are claimed.
  bool run_part() {
    if (!has_parts(state_.load())) return false;
    const uint64_t claimed = state_.fetch_add(1);
    if (!has_parts(claimed)) return false;
    // the leader begins no other loop before this part is done
    each_(data_, claimed & kMask);
    if (done_.fetch_add(1) + 1 == (claimed >> kBits & kMask)) leader_.wake(1);
    return true;
  }

  alignas(64) std::atomic<uint64_t> state_{0};
  alignas(64) std::atomic<uint64_t> done_{0};
  alignas(64) std::atomic<bool> is_over_{false};
  Sleepers leader_, helpers_;
  Each each_ = nullptr;
  void* data_ = nullptr;
  uint64_t loops_ = 0;
};

}  // namespace rakit
