// Programs from one format to another: what XLA can do and the crate `xla` does not offer. Built by build.rs.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/OwningOpRef.h"
#include "xla/debug_options_flags.h"
#include "xla/hlo/builder/xla_computation.h"
#include "xla/hlo/ir/hlo_module.h"
#include "xla/hlo/parser/hlo_parser.h"
#include "xla/hlo/translate/stablehlo.h"
#include "xla/service/hlo.pb.h"
#include "xla/service/hlo_module_config.h"

// Exported by the library; xla/pjrt/mlir_to_hlo.h, which declares them, includes files that are not there.
namespace xla {
absl::Status ParseMlirModuleStringAndConvertToXlaComputation(absl::string_view, XlaComputation&, bool use_tuple_args,
                                                             bool return_tuple);
absl::StatusOr<std::string> SerializeUsingVersionedStablehlo(mlir::ModuleOp, absl::string_view target, bool inplace,
                                                             bool allow_mixed_serialization);
std::string GetDefaultStablehloVersion();
}  // namespace xla

namespace {

absl::StatusOr<std::string> Bytes(const xla::HloModuleProto& module) {
  std::string bytes;
  if (!module.SerializeToString(&bytes)) return absl::InternalError("the module is too large for a protocol buffer");
  return bytes;
}

absl::StatusOr<xla::HloModuleProto> Module(const std::string& bytes) {
  xla::HloModuleProto module;
  if (!module.ParseFromString(bytes)) return absl::InvalidArgumentError("no HLO module as a protocol buffer");
  return module;
}

absl::StatusOr<std::string> TextToProto(const std::string& text) {
  auto module = xla::ParseAndReturnUnverifiedModule(text, xla::HloModuleConfig());
  if (!module.ok()) return module.status();
  return Bytes((*module)->ToProto());
}

absl::StatusOr<std::string> ProtoToText(const std::string& bytes) {
  auto proto = Module(bytes);
  if (!proto.ok()) return proto.status();
  auto config = xla::HloModule::CreateModuleConfigFromProto(*proto, xla::GetDebugOptionsFromFlags());
  if (!config.ok()) return config.status();
  auto module = xla::HloModule::CreateFromProto(*proto, *config);
  if (!module.ok()) return module.status();
  return (*module)->ToString(xla::HloPrintOptions().set_print_large_constants(true).set_print_metadata(true));
}

absl::StatusOr<std::string> StablehloToProto(const std::string& bytes) {
  xla::XlaComputation computation;
  const auto status = xla::ParseMlirModuleStringAndConvertToXlaComputation(bytes, computation, false, false);
  if (!status.ok()) return status;
  return Bytes(computation.proto());
}

// A portable artifact of the version, or readable text where there is none.
absl::StatusOr<std::string> ProtoToStablehlo(const std::string& bytes, const char* version) {
  auto proto = Module(bytes);
  if (!proto.ok()) return proto.status();
  mlir::MLIRContext context;
  auto module = xla::ConvertHloToStablehlo(context, &*proto);
  if (!module.ok()) return module.status();
  if (version != nullptr) return xla::SerializeUsingVersionedStablehlo(**module, version, false, false);
  std::string text;
  llvm::raw_string_ostream stream(text);
  // With locations: the arguments' names are theirs.
  (*module)->getOperation()->print(stream, mlir::OpPrintingFlags().enableDebugInfo());
  return stream.str();
}

absl::StatusOr<std::string> Translate(int what, const std::string& bytes, const char* version) {
  switch (what) {
    case 0: return TextToProto(bytes);
    case 1: return ProtoToText(bytes);
    case 2: return StablehloToProto(bytes);
    case 3: return ProtoToStablehlo(bytes, version);
    default: return xla::GetDefaultStablehloVersion();
  }
}

char* Copy(const std::string& bytes, size_t* size) {
  char* copy = static_cast<char*>(malloc(bytes.size() + 1));
  if (copy == nullptr) return nullptr;
  memcpy(copy, bytes.data(), bytes.size());
  copy[bytes.size()] = 0;
  *size = bytes.size();
  return copy;
}

}  // namespace

// Translates a program: 0 HLO text to a serialised module, 1 the opposite with all constants, 2 StableHLO (text, bytecode
// or portable artifact) to a serialised module, 3 the opposite (`version` of the artifact; null for text), 4 the default
// version. Writes 1 into `ok` and returns the result, or 0 and returns why it failed; to be freed with free().
extern "C" char* sinexp_translate(int what, const char* data, size_t size, const char* version, size_t* out, int* ok) {
  *ok = 0;
  try {
    const auto result = Translate(what, std::string(data, size), version);
    if (!result.ok()) return Copy(std::string(result.status().message()), out);
    *ok = 1;
    return Copy(*result, out);
  } catch (const std::exception& error) {
    *ok = 0;
    return Copy(error.what(), out);
  } catch (...) {
    return Copy("an exception of C++", out);
  }
}
