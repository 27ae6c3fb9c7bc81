// An operator as a node of ONNX Runtime: its calls, and the description that is asked for.
#pragma once
#include "call.h"

namespace rakit {

class NodeCall : public Call {
 public:
  NodeCall(const OrtApi* api, OrtKernelContext* context) : api_(api), context_(context) {}

  Tensor input(size_t index) override {
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

  size_t inputs() {
    if (!inputs_) check(from<InputCount>(api_)(context_, &inputs_));
    return inputs_;
  }

  size_t outputs() {
    size_t count = 0;
    check(from<OutputCount>(api_)(context_, &count));
    return count;
  }

  void* output_data(size_t index, const int64_t* sizes, size_t axes, size_t) override {
    OrtValue* value = nullptr;
    void* data = nullptr;
    check(from<Output>(api_)(context_, index, sizes, axes, &value));
    expect(value, "an output of an operator of rakit is left out");
    if (ok()) check(from<TensorData>(api_)(value, &data));
    return data;
  }

  void run_parts(void (*each)(void*, size_t), size_t parts, void* data) override {
    check(from<ParallelFor>(api_)(context_, each, parts, 0, data));
  }

  OrtStatus* result() const {
    return failed() ? from<CreateStatus>(api_)(kInvalidArgument, failed()) : nullptr;
  }

 private:
  void check(OrtStatus* status) {
    if (!status) return;
    from<ReleaseStatus>(api_)(status);
    expect(false, "ONNX Runtime refused a call of an operator of rakit");
  }

  const OrtApi* api_;
  OrtKernelContext* context_;
  size_t inputs_ = 0;
};

// Describes an operator by a class that is made of a node's attributes and has `compute`, `kName`,
// `kTypes` of its inputs, `kRequired`, how many of these a node must have, and `kResults` and
// `kRequiredResults`, the same of its outputs. What is not required may be left out, but for what is
// variadic (`kVariadic`): the last input and the last output, each of which may stand several times.
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
      if (Kernel::kVariadic && index + 1 == sizeof Kernel::kTypes / sizeof(int)) return 2;
      return index < Kernel::kRequired ? 0 : 1;
    };
    output_characteristic = [](const OrtCustomOp*, size_t index) {
      if (Kernel::kVariadic && index + 1 == sizeof Kernel::kResults / sizeof(int)) return 2;
      return index < Kernel::kRequiredResults ? 0 : 1;
    };
    input_memory = [](const OrtCustomOp*, size_t) { return 0; };
    // how often what is variadic stands at least
    variadic_inputs = [](const OrtCustomOp*) { return 1; };
    variadic_outputs = [](const OrtCustomOp*) { return 0; };
    variadic_inputs_alike = variadic_outputs_alike = [](const OrtCustomOp*) { return 0; };
    create_kernel_v2 = [](const OrtCustomOp*, const OrtApi* api, const OrtKernelInfo* info,
                          void** made) -> OrtStatus* {
      *made = new Made{api, Kernel{Attributes{api, info}}};
      return nullptr;
    };
    compute_v2 = [](void* made, OrtKernelContext* context) -> OrtStatus* {
      auto& [api, kernel] = *static_cast<Made*>(made);
      NodeCall call{api, context};
      kernel.compute(call);
      return call.result();
    };
    destroy_kernel = [](void* made) { delete static_cast<Made*>(made); };
    start_version = [](const OrtCustomOp*) { return 1; };
    end_version = [](const OrtCustomOp*) { return INT32_MAX; };
  }
};

}  // namespace rakit
