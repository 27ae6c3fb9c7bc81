// What operators share: the tensors of a call, and the description that ONNX Runtime asks for.
#pragma once
#include <cstdlib>
#include <cstring>

#include "onnx-runtime.h"

namespace rakit {

struct Tensor {
  static constexpr size_t kMostAxes = 8;
  void* data = nullptr;
  int type = kAnyType;
  size_t axes = 0, elements = 0;
  int64_t sizes[kMostAxes] = {};

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
  size_t size(size_t axis) const { return static_cast<size_t>(sizes[axis]); }
  size_t last() const { return axes ? size(axes - 1) : 0; }
};

// One call of an operator. The first failure is kept, and what follows it returns nothing.
class Call {
 public:
  Call(const OrtApi* api, OrtKernelContext* context) : api_(api), context_(context) {}

  bool ok() const { return !failed_; }
  void expect(bool condition, const char* otherwise) {
    if (!condition && !failed_) failed_ = otherwise;
  }

  // Empty where the node leaves this input out.
  Tensor input(size_t index) {
    const OrtValue* value = nullptr;
    if (index >= inputs()) return {};
    check(from<Input>(api_)(context_, index, &value));
    Tensor tensor;
    if (!ok() || !value) return tensor;
    OrtTensorInfo* info = nullptr;
    check(from<TensorInfo>(api_)(value, &info));
    if (!ok()) return tensor;
    check(from<TensorElementType>(api_)(info, &tensor.type));
    check(from<ElementCount>(api_)(info, &tensor.elements));
    check(from<DimensionCount>(api_)(info, &tensor.axes));
    expect(tensor.axes <= Tensor::kMostAxes, "an input has too many axes");
    if (ok()) check(from<Dimensions>(api_)(info, tensor.sizes, tensor.axes));
    from<ReleaseTensorInfo>(api_)(info);
    check(from<TensorData>(api_)(const_cast<OrtValue*>(value), &tensor.data));
    return tensor;
  }

  template <typename T>
  T* output(size_t index, const int64_t* sizes, size_t axes) {
    OrtValue* value = nullptr;
    void* data = nullptr;
    if (ok()) check(from<Output>(api_)(context_, index, sizes, axes, &value));
    if (ok()) check(from<TensorData>(api_)(value, &data));
    return static_cast<T*>(data);
  }

  // Runs the parts on the threads of the session.
  template <typename Work>
  void parallel(void (*run)(const Work&, size_t), size_t parts, const Work& work) {
    struct Both {
      void (*run)(const Work&, size_t);
      const Work& work;
    };
    Both both{run, work};
    if (parts == 1) return run(work, 0);
    const auto each = [](void* data, size_t part) {
      const auto& [run, work] = *static_cast<Both*>(data);
      run(work, part);
    };
    check(from<ParallelFor>(api_)(context_, each, parts, 0, &both));
  }

  OrtStatus* result() const {
    return failed_ ? from<CreateStatus>(api_)(kInvalidArgument, failed_) : nullptr;
  }

 private:
  size_t inputs() {
    if (!inputs_) check(from<InputCount>(api_)(context_, &inputs_));
    return inputs_;
  }

  void check(OrtStatus* status) {
    if (!status) return;
    from<ReleaseStatus>(api_)(status);
    expect(false, "ONNX Runtime refused a call of an operator of rakit");
  }

  const OrtApi* api_;
  OrtKernelContext* context_;
  size_t inputs_ = 0;
  const char* failed_ = nullptr;
};

// The attributes of a node; those that are absent are 0.
class Attributes {
 public:
  Attributes(const OrtApi* api, const OrtKernelInfo* info) : api_(api), info_(info) {}

  size_t integer(const char* name) const {
    int64_t value = 0;
    ignore(from<IntAttribute>(api_)(info_, name, &value));
    return value > 0 && value <= INT32_MAX ? static_cast<size_t>(value) : 0;
  }

  float number(const char* name) const {
    float value = 0;
    ignore(from<FloatAttribute>(api_)(info_, name, &value));
    return value;
  }

 private:
  void ignore(OrtStatus* status) const {
    if (status) from<ReleaseStatus>(api_)(status);
  }

  const OrtApi* api_;
  const OrtKernelInfo* info_;
};

// Memory of a thread, which is kept for its next call.
class Scratch {
 public:
  ~Scratch() { free(memory_); }
  char* of(size_t bytes) {
    if (bytes <= size_) return memory_;
    free(memory_);
    size_ = (bytes + 4095) / 4096 * 4096;
    memory_ = static_cast<char*>(aligned_alloc(64, size_));
    if (!memory_) abort();
    return memory_;
  }

 private:
  char* memory_ = nullptr;
  size_t size_ = 0;
};

// Describes an operator by a class that is made of a node's attributes and has `compute`, `kName`,
// `kTypes` of its inputs, `kRequired`, how many of these a node must have, and `kResults` and
// `kRequiredResults`, the same of its outputs.
template <typename Kernel>
struct Description : OrtCustomOp {
  struct Made {
    const OrtApi* api;
    Kernel kernel;
  };

  Description() : OrtCustomOp{} {
    version = 17;
    name = [](const OrtCustomOp*) { return Kernel::kName; };
    provider = [](const OrtCustomOp*) -> const char* { return nullptr; };
    input_count = [](const OrtCustomOp*) { return sizeof Kernel::kTypes / sizeof(int); };
    input_type = [](const OrtCustomOp*, size_t index) { return Kernel::kTypes[index]; };
    output_count = [](const OrtCustomOp*) { return sizeof Kernel::kResults / sizeof(int); };
    output_type = [](const OrtCustomOp*, size_t index) { return Kernel::kResults[index]; };
    input_characteristic = [](const OrtCustomOp*, size_t index) {
      return index < Kernel::kRequired ? 0 : 1;
    };
    output_characteristic = [](const OrtCustomOp*, size_t index) {
      return index < Kernel::kRequiredResults ? 0 : 1;
    };
    input_memory = [](const OrtCustomOp*, size_t) { return 0; };
    variadic_inputs = variadic_outputs = [](const OrtCustomOp*) { return 0; };
    variadic_inputs_alike = variadic_outputs_alike = [](const OrtCustomOp*) { return 0; };
    create_kernel_v2 = [](const OrtCustomOp*, const OrtApi* api, const OrtKernelInfo* info,
                          void** made) -> OrtStatus* {
      *made = new Made{api, Kernel{Attributes{api, info}}};
      return nullptr;
    };
    compute_v2 = [](void* made, OrtKernelContext* context) -> OrtStatus* {
      auto& [api, kernel] = *static_cast<Made*>(made);
      Call call{api, context};
      kernel.compute(call);
      return call.result();
    };
    destroy_kernel = [](void* made) { delete static_cast<Made*>(made); };
    start_version = [](const OrtCustomOp*) { return 1; };
    end_version = [](const OrtCustomOp*) { return INT32_MAX; };
  }
};

}  // namespace rakit
