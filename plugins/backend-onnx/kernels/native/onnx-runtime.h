// The part of ONNX Runtime's C ABI that a custom operator needs. The published package brings no
// header; the ABI only ever grows (onnxruntime_c_api.h: "new functions are added at the end"), so
// that functions are named by their place in the table.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rakit {

struct OrtApi;
struct OrtKernelContext;
struct OrtKernelInfo;
struct OrtMemoryInfo;
struct OrtStatus;
struct OrtTensorInfo;
struct OrtValue;
struct OrtDomain;
struct OrtOptions;

struct OrtApiBase {
  const OrtApi* (*get_api)(uint32_t version);
  const char* (*version)();
};

enum ElementType : int { kFloat = 1, kUint8 = 2, kUint16 = 4, kInt64 = 7, kAnyType = 0 };
enum AllocatorType : int { kDeviceAllocator = 0 };
enum MemoryType : int { kDefaultMemory = 0 };
enum ErrorCode : int { kFail = 1, kInvalidArgument = 2 };

// Places in the table, and what stands there.
template <size_t Place, typename Function>
struct Entry {
  static constexpr size_t place = Place;
  using Type = Function;
};
using CreateStatus = Entry<0, OrtStatus* (*)(int code, const char* message)>;
using CreateSession = Entry<7, OrtStatus* (*)(const void* env, const char* path,
                                              const OrtOptions*, void** session)>;
using CreateSessionFromArray = Entry<8, OrtStatus* (*)(const void* env, const void* bytes, size_t,
                                                       const OrtOptions*, void** session)>;
using Run = Entry<9, OrtStatus* (*)(void* session, const void* options, const char* const* input_names,
                                   const OrtValue* const* inputs, size_t input_count,
                                   const char* const* output_names, size_t output_count,
                                   OrtValue** outputs)>;
using CreateDomain = Entry<26, OrtStatus* (*)(const char* name, OrtDomain**)>;
using AddToDomain = Entry<27, OrtStatus* (*)(OrtDomain*, const struct OrtCustomOp*)>;
using AddDomain = Entry<28, OrtStatus* (*)(OrtOptions*, OrtDomain*)>;
using CreateTensorWithData = Entry<49, OrtStatus* (*)(const OrtMemoryInfo*, void* data, size_t bytes,
                                                     const int64_t* shape, size_t count, int type,
                                                     OrtValue**)>;
using TensorData = Entry<51, OrtStatus* (*)(OrtValue*, void** data)>;
using TensorElementType = Entry<60, OrtStatus* (*)(const OrtTensorInfo*, int* type)>;
using DimensionCount = Entry<61, OrtStatus* (*)(const OrtTensorInfo*, size_t*)>;
using Dimensions = Entry<62, OrtStatus* (*)(const OrtTensorInfo*, int64_t*, size_t count)>;
using ElementCount = Entry<64, OrtStatus* (*)(const OrtTensorInfo*, size_t*)>;
using TensorInfo = Entry<65, OrtStatus* (*)(const OrtValue*, OrtTensorInfo**)>;
using CreateCpuMemory = Entry<69, OrtStatus* (*)(int allocator, int type, OrtMemoryInfo**)>;
using FloatAttribute = Entry<85, OrtStatus* (*)(const OrtKernelInfo*, const char*, float*)>;
using IntAttribute = Entry<86, OrtStatus* (*)(const OrtKernelInfo*, const char*, int64_t*)>;
using InputCount = Entry<88, OrtStatus* (*)(const OrtKernelContext*, size_t*)>;
using OutputCount = Entry<89, OrtStatus* (*)(const OrtKernelContext*, size_t*)>;
using Input = Entry<90, OrtStatus* (*)(const OrtKernelContext*, size_t, const OrtValue**)>;
using Output = Entry<91, OrtStatus* (*)(OrtKernelContext*, size_t, const int64_t* shape,
                                        size_t count, OrtValue**)>;
using ReleaseStatus = Entry<93, void (*)(OrtStatus*)>;
using ReleaseValue = Entry<96, void (*)(OrtValue*)>;
using ReleaseTensorInfo = Entry<99, void (*)(OrtTensorInfo*)>;
using ParallelFor = Entry<274, OrtStatus* (*)(const OrtKernelContext*, void (*)(void*, size_t),
                                              size_t total, size_t batches, void* data)>;

template <typename Which>
typename Which::Type from(const OrtApi* api) {
  return reinterpret_cast<typename Which::Type const*>(api)[Which::place];
}

// OrtCustomOp of version 17 of the API; later fields are not read for it.
struct OrtCustomOp {
  uint32_t version;
  void* (*create_kernel)(const OrtCustomOp*, const OrtApi*, const OrtKernelInfo*);
  const char* (*name)(const OrtCustomOp*);
  const char* (*provider)(const OrtCustomOp*);
  int (*input_type)(const OrtCustomOp*, size_t);
  size_t (*input_count)(const OrtCustomOp*);
  int (*output_type)(const OrtCustomOp*, size_t);
  size_t (*output_count)(const OrtCustomOp*);
  void (*compute)(void*, OrtKernelContext*);
  void (*destroy_kernel)(void*);
  int (*input_characteristic)(const OrtCustomOp*, size_t);
  int (*output_characteristic)(const OrtCustomOp*, size_t);
  int (*input_memory)(const OrtCustomOp*, size_t);
  int (*variadic_inputs)(const OrtCustomOp*);
  int (*variadic_inputs_alike)(const OrtCustomOp*);
  int (*variadic_outputs)(const OrtCustomOp*);
  int (*variadic_outputs_alike)(const OrtCustomOp*);
  OrtStatus* (*create_kernel_v2)(const OrtCustomOp*, const OrtApi*, const OrtKernelInfo*, void**);
  OrtStatus* (*compute_v2)(void*, OrtKernelContext*);
  OrtStatus* (*infer_shape)(const OrtCustomOp*, void*);
  int (*start_version)(const OrtCustomOp*);
  int (*end_version)(const OrtCustomOp*);
  size_t (*may_inplace)(int**, int**);
  void (*release_may_inplace)(int*, int*);
  size_t (*alias_map)(int**, int**);
  void (*release_alias_map)(int*, int*);
};


}  // namespace rakit
