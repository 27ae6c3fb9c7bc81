// Threads that run one loop after another together, without being woken for each.
#pragma once
#include <immintrin.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace rakit {

// One thread leads: it runs what stands between the loops, and takes part in them. Parts of a loop are
// claimed one by one, so no thread waits for one that has not come, or that does not get a core: it
// runs the parts itself, and waits only for those that are claimed.
//
// A thread that has nothing to do looks for a while whether there is something, then sleeps until it
// is woken.
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
    wake();
    while (run_part()) {}
    await([&] { return done_.load() == parts; });
  }

  // Ends the team: `help` returns in all other threads. Called by the leader only.
  void end() {
    is_over_ = true;
    wake();
  }

  // Runs parts until the leader ends it.
  void help() {
    while (!is_over_) {
      const uint64_t seen = state_.load();
      if (has_parts(seen)) run_part();
      else await([&] { return is_over_ || state_.load() != seen; });
    }
  }

 private:
  // The state is the number of the loop, how many parts it has, and the next one to be claimed, so that
  // a claim is of the loop that it is for.
  static constexpr unsigned kBits = 20;
  static constexpr uint64_t kMask = (uint64_t{1} << kBits) - 1;
  // Looks before a thread sleeps, with a pause after each: of 10 to 140 cycles, by processor.
  static constexpr int kLooks = 300;

  static bool has_parts(uint64_t state) { return (state & kMask) < (state >> kBits & kMask); }

  // Returns false when all parts are claimed.
  bool run_part() {
    if (!has_parts(state_.load())) return false;
    const uint64_t claimed = state_.fetch_add(1);
    if (!has_parts(claimed)) return false;
    // the leader begins no other loop before this part is done
    each_(data_, claimed & kMask);
    if (done_.fetch_add(1) + 1 == (claimed >> kBits & kMask)) wake();
    return true;
  }

  template <typename Condition>
  void await(const Condition& condition) {
    for (int i = 0; i < kLooks; i++) {
      if (condition()) return;
      _mm_pause();
    }
    std::unique_lock lock(mutex_);
    sleepers_++;
    changed_.wait(lock, condition);
    sleepers_--;
  }

  // What sleepers wait for must be written before.
  void wake() {
    if (sleepers_ == 0) return;
    { std::lock_guard lock(mutex_); }
    changed_.notify_all();
  }

  alignas(64) std::atomic<uint64_t> state_{0};
  alignas(64) std::atomic<uint64_t> done_{0};
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<bool> is_over_{false};
  Each each_ = nullptr;
  void* data_ = nullptr;
  uint64_t loops_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace rakit
