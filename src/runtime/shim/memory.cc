// What a compiled program needs of memory, which PJRT knows and the crate `xla` does not ask for. Built by build.rs.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "xla/hlo/builder/xla_computation.h"
#include "xla/pjrt/pjrt_client.h"
#include "xla/pjrt/plugin/xla_cpu/xla_cpu_pjrt_client.h"
#include "xla/service/hlo.pb.h"

namespace {

absl::StatusOr<xla::CompiledMemoryStats> Compile(const char* data, size_t size) {
  xla::HloModuleProto module;
  if (!module.ParseFromString(std::string(data, size))) return absl::InvalidArgumentError("not an HLO module");
  xla::CpuClientOptions options;
  options.asynchronous = false;
  auto client = xla::GetXlaPjrtCpuClient(std::move(options));
  if (!client.ok()) return client.status();
  const xla::XlaComputation computation(std::move(module));
  auto executable = (*client)->CompileAndLoad(computation, xla::CompileOptions());
  if (!executable.ok()) return executable.status();
  return (*executable)->GetCompiledMemoryStats();
}

}  // namespace

// Compiles a serialised HLO module for the in-process CPU and writes bytes of arguments, results, results in donated
// arguments, and temporaries. (The fields for code and peak say nothing on CPU: 0, and arguments plus results.) Returns
// null, or why it failed, to be freed with free().
extern "C" char* sinexp_memory_stats(const char* module, size_t size, int64_t out[4]) {
  try {
    const auto stats = Compile(module, size);
    if (!stats.ok()) return strdup(std::string(stats.status().message()).c_str());
    out[0] = stats->argument_size_in_bytes;
    out[1] = stats->output_size_in_bytes;
    out[2] = stats->alias_size_in_bytes;
    out[3] = stats->temp_size_in_bytes;
    return nullptr;
  } catch (const std::exception& error) {
    return strdup(error.what());
  } catch (...) {
    return strdup("an exception of C++");
  }
}
