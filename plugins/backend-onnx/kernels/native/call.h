// What operators share: the tensors of a call, and the attributes of a node.
#pragma once
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

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

// One call of an operator, by a node of its own or by a chain. The first failure is kept, and what
// follows it returns nothing.
class Call {
 public:
  bool ok() const { return !failed_; }
  const char* failed() const { return failed_; }
  void expect(bool condition, const char* otherwise) {
    if (!condition && !failed_) failed_ = otherwise;
  }

  // Empty where the node leaves this input out.
  virtual Tensor input(size_t index) = 0;

  // `sizes` are the lengths of the axes. Null where the call has failed.
  template <typename T>
  T* output(size_t index, const int64_t* sizes, size_t axes) {
    return static_cast<T*>(ok() ? output_data(index, sizes, axes, sizeof(T)) : nullptr);
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
    run_parts(each, parts, &both);
  }

 protected:
  virtual void* output_data(size_t index, const int64_t* sizes, size_t axes, size_t bytes) = 0;
  virtual void run_parts(void (*each)(void*, size_t), size_t parts, void* data) = 0;

 private:
  const char* failed_ = nullptr;
};

// The attributes of a node; those that are absent are 0. The node of a chain has the
// attributes of each operator with its number before their names: "0.K", "1.K".
class Attributes {
 public:
  Attributes(const OrtApi* api, const OrtKernelInfo* info, std::string prefix = "")
      : api_(api), info_(info), prefix_(std::move(prefix)) {}

  size_t integer(const char* name, int64_t most = INT32_MAX) const {
    int64_t value = 0;
    ignore(from<IntAttribute>(api_)(info_, (prefix_ + name).c_str(), &value));
    return value > 0 && value <= most ? static_cast<size_t>(value) : 0;
  }

  float number(const char* name) const {
    float value = 0;
    ignore(from<FloatAttribute>(api_)(info_, (prefix_ + name).c_str(), &value));
    return value;
  }

  Attributes of(size_t number) const { return {api_, info_, std::to_string(number) + "."}; }

 private:
  void ignore(OrtStatus* status) const {
    if (status) from<ReleaseStatus>(api_)(status);
  }

  const OrtApi* api_;
  const OrtKernelInfo* info_;
  std::string prefix_;
};

template <size_t Count>
int input_type(const int (&types)[Count], size_t index) {
  return index < Count ? types[index] : kAnyType;
}

// What is made of a node's attributes, and runs its calls.
class Operator {
 public:
  static constexpr bool kVariadic = false;
  virtual ~Operator() = default;
  virtual void compute(Call& call) const = 0;
  // The type of an input.
  virtual int type_of(size_t input) const = 0;
};

// Memory of a thread, which is kept for its next call.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  ~Scratch() { free(memory_); }
  char* of(size_t bytes) {
    if (memory_ && bytes <= size_) return memory_;
    free(memory_);
    size_ = bytes / 4096 * 4096 + 4096;
    memory_ = static_cast<char*>(aligned_alloc(64, size_));
    if (!memory_) abort();
    return memory_;
  }

 private:
  char* memory_ = nullptr;
  size_t size_ = 0;
};

}  // namespace rakit
