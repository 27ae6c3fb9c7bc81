#include "processor.h"

#include <cstdlib>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

namespace rakit {
namespace {

// Linux gives a process the registers of AMX when it asks for them
// (Documentation/arch/x86/xstate.rst).
bool may_use_tiles() {
  constexpr long request = 0x1023, tile_data = 18;
  return syscall(SYS_arch_prctl, request, tile_data) == 0;
}

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
}

bool has_amx() {
  unsigned eax = 7, ebx, ecx = 0, edx;
  __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
  constexpr unsigned tile = 1u << 24, int8 = 1u << 25;
  return (edx & tile) && (edx & int8) && may_use_tiles();
}

// RAKIT_KERNELS names the kernels to use where the processor has others, too: for tests and benches.
bool allowed(const Kernels& kernels) {
  const char* wanted = getenv("RAKIT_KERNELS");
  return !wanted || !*wanted || !strcmp(wanted, kernels.name);
}

const Kernels* choose() {
  __builtin_cpu_init();
  if (has_avx512() && allowed(kAmx) && has_amx()) return &kAmx;
  if (has_avx512() && allowed(kAvx512)) return &kAvx512;
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("f16c");
  return has_avx2 && allowed(kAvx2) ? &kAvx2 : nullptr;
}

}  // namespace

const Kernels* kernels() {
  static const Kernels* const chosen = choose();
  return chosen;
}

}  // namespace rakit
