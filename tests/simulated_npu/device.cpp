// A device for PyTorch on the host's own memory, so that the path to an accelerator can be tested without one: memory
// with statistics, two devices, streams, events, mixed precision. Operators run on the CPU. It proves that our code goes
// through torch.accelerator and torch.Event as it should, and nothing about Ascend.

#include <ATen/EmptyTensor.h>
#include <ATen/autocast_mode.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace {

using c10::CachingDeviceAllocator::DeviceStats;
using Clock = std::chrono::steady_clock;

constexpr auto kNpu = c10::DeviceType::PrivateUse1;
constexpr c10::DeviceIndex kDevices = 2;
constexpr size_t kAll = 0;  // StatType::AGGREGATE

thread_local c10::DeviceIndex current = 0;

// The queue: an operator has its result at once, but the device says that it works four times as long as the host.
// So a timer that does not wait reads too little off the clock.
Clock::time_point busy_until;

thread_local int depth = 0;  // operators within operators, whose inputs are copied without waiting

struct Queued {
  Clock::time_point begun = Clock::now();
  Queued() { ++depth; }
  ~Queued() {
    if (--depth == 0) busy_until = std::max(busy_until, begun) + 4 * (Clock::now() - begun);
  }
};

void wait() { std::this_thread::sleep_until(busy_until); }

struct Block {
  void* data;
  size_t bytes;
  c10::DeviceIndex device;
};

struct Memory final : c10::DeviceAllocator {
  DeviceStats stats[kDevices];

  c10::DataPtr allocate(size_t bytes) override;
  void copy_data(void* to, const void* from, size_t count) const override { default_copy_data(to, from, count); }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  DeviceStats getDeviceStats(c10::DeviceIndex device) override { return stats[device]; }
  void resetAccumulatedStats(c10::DeviceIndex device) override { stats[device].allocated_bytes[kAll].reset_accumulated(); }
  void resetPeakStats(c10::DeviceIndex device) override { stats[device].allocated_bytes[kAll].reset_peak(); }
};

Memory memory;

void release(void* context) {
  auto* block = static_cast<Block*>(context);
  memory.stats[block->device].allocated_bytes[kAll].decrease(block->bytes);
  std::free(block->data);
  delete block;
}

c10::DataPtr Memory::allocate(size_t bytes) {
  auto* block = new Block{std::aligned_alloc(64, (bytes + 64) / 64 * 64), bytes, current};
  stats[current].allocated_bytes[kAll].increase(bytes);
  return {block->data, block, &release, c10::Device(kNpu, current)};
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kNpu; }
  c10::Device exchangeDevice(c10::Device device) const override {
    c10::Device before(kNpu, current);
    current = device.index();
    return before;
  }
  c10::Device getDevice() const override { return {kNpu, current}; }
  void setDevice(c10::Device device) const override { current = device.index(); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { current = device.index(); }
  c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getDefaultStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getNewStream(c10::Device device, int) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return c10::Stream(c10::Stream::DEFAULT, stream.device()); }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
  void record(void** event, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {
    if (*event == nullptr) *event = new Clock::time_point;
    *static_cast<Clock::time_point*>(*event) = std::max(busy_until, Clock::now());
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void* event) const override { std::this_thread::sleep_until(*static_cast<Clock::time_point*>(event)); }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override { delete static_cast<Clock::time_point*>(event); }
  double elapsedTime(void* from, void* to, const c10::DeviceIndex) const override {
    auto passed = *static_cast<Clock::time_point*>(to) - *static_cast<Clock::time_point*>(from);
    return std::chrono::duration<double, std::milli>(passed).count();
  }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override { wait(); }
  void synchronizeDevice(const c10::DeviceIndex) const override { wait(); }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  c10::DeviceIndex getCurrentDevice() const override { return current; }
  void setCurrentDevice(c10::DeviceIndex device) const override { current = device; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override { return std::exchange(current, device); }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override { return std::exchange(current, device); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    auto data = memory.allocate(bytes);
    std::memcpy(data.get(), storage.data(), std::min(bytes, storage.nbytes()));
    storage.set_data_ptr_noswap(std::move(data));
    storage.unsafeGetStorageImpl()->set_nbytes(bytes);
  }
};

// The same memory as a tensor of the CPU.
at::Tensor on_cpu(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
}

at::Tensor to_npu(const at::Tensor& tensor) { return tensor.to(c10::Device(kNpu, current)); }

at::Tensor empty(
    at::IntArrayRef size,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>,
    std::optional<at::Device>,
    std::optional<bool>,
    std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(
      size, &memory, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(
    at::IntArrayRef size,
    at::IntArrayRef stride,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>,
    std::optional<at::Device>,
    std::optional<bool>) {
  return at::detail::empty_strided_generic(
      size, stride, &memory, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::dtype_or_default(dtype));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  if (to.is_cpu() && depth == 0) wait();
  on_cpu(to).copy_(on_cpu(from));
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  on_cpu(to).copy_(on_cpu(from));
  return to;
}

at::Tensor& set_storage(at::Tensor& tensor, c10::Storage source, int64_t offset, at::IntArrayRef size, at::IntArrayRef stride) {
  auto* impl = tensor.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_storage_offset(offset);
  stride.empty() ? impl->set_sizes_contiguous(size) : impl->set_sizes_and_strides(size, stride);
  return tensor;
}

at::Tensor& set_whole_storage(at::Tensor& tensor, c10::Storage source) {
  auto count = static_cast<int64_t>(source.nbytes() / tensor.element_size());
  return set_storage(tensor, std::move(source), 0, {count}, {});
}

at::Tensor convolution(
    const at::Tensor& input,
    const at::Tensor& weight,
    const std::optional<at::Tensor>& bias,
    at::IntArrayRef stride,
    at::IntArrayRef padding,
    at::IntArrayRef dilation,
    bool transposed,
    at::IntArrayRef output_padding,
    int64_t groups) {
  Queued queued;
  std::optional<at::Tensor> bias_on_cpu;
  if (bias.has_value() && bias->defined()) bias_on_cpu = on_cpu(*bias);
  return to_npu(at::convolution(
      on_cpu(input), on_cpu(weight), bias_on_cpu, stride, padding, dilation, transposed, output_padding, groups));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& gradient,
    const at::Tensor& input,
    const at::Tensor& weight,
    at::IntArrayRef stride,
    at::IntArrayRef padding,
    at::IntArrayRef dilation,
    bool transposed,
    at::IntArrayRef output_padding,
    int64_t groups,
    std::array<bool, 3> wanted) {
  Queued queued;
  auto found = at::convolution_backward(
      on_cpu(gradient), on_cpu(input), on_cpu(weight), at::IntArrayRef{weight.size(0)}, stride, padding, dilation,
      transposed, output_padding, groups, wanted);
  auto moved = [](const at::Tensor& tensor) { return tensor.defined() ? to_npu(tensor) : tensor; };
  return {moved(std::get<0>(found)), moved(std::get<1>(found)), moved(std::get<2>(found))};
}

void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Queued queued;
  at::native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fall_back>()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
  m.impl("_reshape_alias", at::native::_reshape_alias);
  m.impl("unfold", at::native::unfold);
  m.impl("resize_", at::native::resize_);
  m.impl("set_.source_Storage", set_whole_storage);
  m.impl("set_.source_Storage_storage_offset", set_storage);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("convolution_overrideable", convolution);
  m.impl("convolution_backward_overrideable", convolution_backward);
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  KERNEL_PRIVATEUSEONE(linear, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(conv2d, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(matmul, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(cross_entropy_loss, fp32)
}

const bool registered = [] {
  c10::SetAllocator(kNpu, &memory);
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

}  // namespace
