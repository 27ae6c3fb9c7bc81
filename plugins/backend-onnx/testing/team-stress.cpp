// Runs teams of ARGV[1] threads, ARGV[2] of them one after another, each through 150 loops of random
// sizes with pauses between; ends with 1 when a part did not run exactly once.
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "../kernels/native/team.h"

namespace {

struct Loop {
  std::vector<int> runs;
  int work;
};

void run_part(void* data, size_t part) {
  auto& loop = *static_cast<Loop*>(data);
  for (volatile int i = 0; i < loop.work; i = i + 1) {}
  loop.runs[part]++;
}

void lead(rakit::Team& team, std::minstd_rand& random) {
  for (int i = 0; i < 150; i++) {
    Loop loop{std::vector<int>(2 + random() % 12), random() % 3 ? 20 : 4000};
    team.loop(run_part, loop.runs.size(), &loop);
    for (int runs : loop.runs)
      if (runs != 1) exit(1);
    if (random() % 20 == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 60));
  }
  team.end();
}

}  // namespace

int main(int, char** arguments) {
  std::minstd_rand random;
  for (int round = 0; round < atoi(arguments[2]); round++) {
    rakit::Team team;
    std::atomic<bool> is_led{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < atoi(arguments[1]); i++)
      threads.emplace_back([&] {
        if (is_led.exchange(true)) team.help();
        else lead(team, random);
      });
    for (auto& thread : threads) thread.join();
  }
}
