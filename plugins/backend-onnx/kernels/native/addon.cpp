// A Node addon that has to be loaded, with its symbols global, before onnxruntime-node: the binding
// then takes its API table from here, and each of its sessions knows the operators of the domain
// "rakit". The binding itself can't register operators (onnxruntime-node 1.30.0).
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <initializer_list>
#include <link.h>
#include <mutex>
#include <vector>

#include "large-pages.h"
#include "node-api.h"
#include "onnx-runtime.h"
#include "operators.h"
#include "processor.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace rakit {
namespace {

const OrtApi* original = nullptr;
std::atomic<bool> in_use{false};

OrtDomain* make_domain() {
  OrtDomain* domain = nullptr;
  if (from<CreateDomain>(original)("rakit", &domain)) return nullptr;
  for (const OrtCustomOp* op : {block_matmul(), cached_attention(), gated_unit(), chain()})
    if (from<AddToDomain>(original)(domain, op)) return nullptr;
  return domain;
}

// Of the process, as sessions keep what they were given.
OrtDomain* domain() {
  static OrtDomain* const made = make_domain();
  return made;
}

OrtStatus* add_domain(const OrtOptions* options) {
  if (!domain()) return from<CreateStatus>(original)(kFail, "rakit's operators are not there");
  return from<AddDomain>(original)(const_cast<OrtOptions*>(options), domain());
}

// ONNX Runtime (1.30) notes the domain in a list of the process when a session is created: it looks
// whether the domain is there, then adds it, and fails where another thread has added it between. So
// sessions are created one after the other until there is one.
std::mutex until_first;
std::atomic<bool> is_noted{false};

template <typename Create>
OrtStatus* with_domain(const OrtOptions* options, const Create& create) {
  if (OrtStatus* failed = add_domain(options)) return failed;
  std::unique_lock lock(until_first, std::defer_lock);
  if (!is_noted) lock.lock();
  OrtStatus* failed = create();
  if (!failed) is_noted = true;
  return failed;
}

OrtStatus* create_session(const void* env, const char* path, const OrtOptions* options,
                          void** session) {
  return with_domain(options, [&] {
    return from<CreateSession>(original)(env, path, options, session);
  });
}

OrtStatus* create_session_from_array(const void* env, const void* bytes, size_t length,
                                     const OrtOptions* options, void** session) {
  return with_domain(options, [&] {
    return from<CreateSessionFromArray>(original)(env, bytes, length, options, session);
  });
}

const OrtMemoryInfo* cpu_memory() {
  static OrtMemoryInfo* const made = [] {
    OrtMemoryInfo* memory = nullptr;
    from<CreateCpuMemory>(original)(kDeviceAllocator, kDefaultMemory, &memory);
    return memory;
  }();
  return made;
}

OrtStatus* make_empty(OrtValue** value) {
  static float none;
  const int64_t shape[] = {0};
  return from<CreateTensorWithData>(original)(cpu_memory(), &none, 0, shape, 1, kFloat, value);
}

// The binding (1.30.0) copies every output into new memory, those, too, that are written to memory
// of the caller: 1.6 MB a step of eight streams of 135M. As the caller has them, it gets empty ones.
OrtStatus* run_session(void* session, const void* options, const char* const* input_names,
                       const OrtValue* const* inputs, size_t input_count,
                       const char* const* output_names, size_t output_count, OrtValue** outputs) {
  const std::vector<OrtValue*> given(outputs, outputs + output_count);
  if (OrtStatus* failed = from<Run>(original)(session, options, input_names, inputs, input_count,
                                              output_names, output_count, outputs))
    return failed;
  for (size_t i = 0; i < output_count; i++) {
    if (!given[i]) continue;
    OrtValue* empty = nullptr;
    if (OrtStatus* failed = make_empty(&empty)) return failed;
    from<ReleaseValue>(original)(outputs[i]);
    outputs[i] = empty;
  }
  return nullptr;
}

// The end of the memory that a table at this address may reach to: that of its library's segment.
struct Search {
  uintptr_t address, end;
};

int find_segment(dl_phdr_info* library, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  for (int i = 0; i < library->dlpi_phnum; i++) {
    const auto& header = library->dlpi_phdr[i];
    const uintptr_t start = library->dlpi_addr + header.p_vaddr;
    if (header.p_type != PT_LOAD || search->address < start) continue;
    if (search->address >= start + header.p_memsz) continue;
    search->end = start + header.p_memsz;
    return 1;
  }
  return 0;
}

constexpr size_t kMostEntries = 1024;
void* table[kMostEntries];

// A copy of the table, as the original one is read-only, with sessions made and run by the functions
// above.
const OrtApi* wrapped(const OrtApi* api) {
  original = api;
  Search search{reinterpret_cast<uintptr_t>(api), 0};
  if (!dl_iterate_phdr(find_segment, &search)) return api;
  const size_t bytes = search.end - search.address;
  memcpy(table, api, bytes < sizeof table ? bytes : sizeof table);
  table[CreateSession::place] = reinterpret_cast<void*>(create_session);
  table[CreateSessionFromArray::place] = reinterpret_cast<void*>(create_session_from_array);
  table[Run::place] = reinterpret_cast<void*>(run_session);
  in_use = true;
  return reinterpret_cast<const OrtApi*>(table);
}

const OrtApiBase* original_base() {
  // loaded already, as the binding that asks needs it
  void* library = dlopen("libonnxruntime.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!library) return nullptr;
  using Get = const OrtApiBase* (*)();
  const auto get = reinterpret_cast<Get>(dlsym(library, "OrtGetApiBase"));
  return get ? get() : nullptr;
}

const OrtApi* get_api(uint32_t version) {
  const OrtApiBase* base = original_base();
  const OrtApi* api = base ? base->get_api(version) : nullptr;
  if (!api || !kernels()) return api;
  // one binding asks, once; another version of it keeps its own table
  static const OrtApi* const first = api;
  static const OrtApi* const copy = wrapped(first);
  return api == first ? copy : api;
}

const char* get_version() {
  const OrtApiBase* base = original_base();
  return base ? base->version() : "";
}

const OrtApiBase kBase{get_api, get_version};

}  // namespace
}  // namespace rakit

EXPORTED const rakit::OrtApiBase* OrtGetApiBase() noexcept { return &rakit::kBase; }

namespace {

// Whether sessions of this process know the operators.
napi_value__* is_in_use(napi_env__* env, napi_callback_info__*) {
  napi_value__* value = nullptr;
  napi_get_boolean(env, rakit::in_use, &value);
  return value;
}

// Gives free pages of malloc back to the system; glibc keeps them otherwise.
napi_value__* trim_memory(napi_env__* env, napi_callback_info__*) {
  using Trim = int (*)(size_t);
  static const auto trim = reinterpret_cast<Trim>(dlsym(RTLD_DEFAULT, "malloc_trim"));
  if (trim) trim(0);
  napi_value__* value = nullptr;
  napi_get_undefined(env, &value);
  return value;
}

// Asks for large pages in an ArrayBuffer that nothing was written to yet.
napi_value__* advise_large_pages(napi_env__* env, napi_callback_info__* info) {
  size_t count = 1, bytes = 0;
  void* data = nullptr;
  napi_value__* value = nullptr;
  napi_get_cb_info(env, info, &count, &value, nullptr, nullptr);
  if (!napi_get_arraybuffer_info(env, value, &data, &bytes) && data)
    rakit::advise_large_pages(data, bytes);
  napi_get_undefined(env, &value);
  return value;
}

// Has malloc return large blocks to the system when they are freed. By itself, glibc raises its
// thresholds to 32 MB and twice as much with the first such blocks, and keeps the memory of a burst of
// prompts (mallopt(3)). What the operator has set counts.
void return_large_blocks() {
  constexpr int kTrimThreshold = -1, kMmapThreshold = -3;
  using Tune = int (*)(int what, int bytes);
  const auto tune = reinterpret_cast<Tune>(dlsym(RTLD_DEFAULT, "mallopt"));
  if (!tune || getenv("MALLOC_MMAP_THRESHOLD_") || getenv("MALLOC_TRIM_THRESHOLD_")) return;
  tune(kMmapThreshold, 1 << 18);
  tune(kTrimThreshold, 1 << 20);
}

}  // namespace

EXPORTED napi_value__* napi_register_module_v1(napi_env__* env, napi_value__* exports) {
  return_large_blocks();
  const rakit::Kernels* kernels = rakit::kernels();
  napi_value__* value = nullptr;
  napi_create_string_utf8(env, kernels ? kernels->name : "", static_cast<size_t>(-1), &value);
  napi_set_named_property(env, exports, "instructions", value);
  rakit::export_function(env, exports, "isInUse", is_in_use);
  rakit::export_function(env, exports, "trimMemory", trim_memory);
  rakit::export_function(env, exports, "adviseLargePages", advise_large_pages);
  if (kernels) rakit::export_logits(env, exports);
  return exports;
}
