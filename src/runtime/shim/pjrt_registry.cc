// The registry of PJRT plugins that xla/pjrt/pjrt_api.h declares: a name, the plugin's function table, and whether it
// was initialised. XLA's own libraries carry these functions; the library of the tensorflow wheel does not export them,
// so ./setup compiles this file and links it beside that library. It must not be linked with an official xla_extension.

#include <dlfcn.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "xla/pjrt/pjrt_api.h"

namespace {

struct Entry {
  const PJRT_Api* api = nullptr;
  bool initialized = false;
};

// Plugins are never unloaded, so neither is the registry.
std::mutex& Lock() {
  static auto* const lock = new std::mutex;
  return *lock;
}

std::map<std::string, Entry>& Entries() {
  static auto* const entries = new std::map<std::string, Entry>;
  return *entries;
}

// Names are compared without case. The caller holds the lock.
absl::StatusOr<Entry*> Find(absl::string_view name) {
  const auto found = Entries().find(absl::AsciiStrToLower(name));
  if (found == Entries().end()) {
    return absl::NotFoundError(absl::StrCat("no PJRT plugin is registered as '", name, "'"));
  }
  return &found->second;
}

// The plugin's own words about an error, which is destroyed.
std::string TakeMessage(const PJRT_Api* api, PJRT_Error* error) {
  PJRT_Error_Message_Args message{};
  message.struct_size = PJRT_Error_Message_Args_STRUCT_SIZE;
  message.error = error;
  api->PJRT_Error_Message(&message);
  std::string text(message.message, message.message_size);
  PJRT_Error_Destroy_Args destroy{};
  destroy.struct_size = PJRT_Error_Destroy_Args_STRUCT_SIZE;
  destroy.error = error;
  api->PJRT_Error_Destroy(&destroy);
  return text;
}

// The interface's minor version that a plugin must have at least: XLA's client calls functions that older tables lack.
constexpr int kOldestMinor = 60;

// Whether this XLA can call the plugin at all: a table of another layout would be read out of place.
absl::Status CheckVersion(absl::string_view path, const PJRT_Api* api) {
  const PJRT_Api_Version& version = api->pjrt_api_version;
  if (version.major_version == PJRT_API_MAJOR && version.minor_version >= kOldestMinor) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      path, ": the plugin has PJRT API version ", version.major_version, ".", version.minor_version,
      ", this XLA has ", PJRT_API_MAJOR, ".", PJRT_API_MINOR, " and takes ", PJRT_API_MAJOR, ".", kOldestMinor,
      " or newer: install a plugin of that version"));
}

}  // namespace

namespace pjrt {

absl::StatusOr<const PJRT_Api*> PjrtApi(absl::string_view name) {
  const std::lock_guard<std::mutex> guard(Lock());
  const auto entry = Find(name);
  if (!entry.ok()) return entry.status();
  return (*entry)->api;
}

absl::Status SetPjrtApi(absl::string_view name, const PJRT_Api* api) {
  const std::lock_guard<std::mutex> guard(Lock());
  const auto [place, added] = Entries().insert({absl::AsciiStrToLower(name), Entry{api}});
  if (!added) return absl::AlreadyExistsError(absl::StrCat("a PJRT plugin is registered as '", name, "' already"));
  return absl::OkStatus();
}

absl::StatusOr<const PJRT_Api*> LoadPjrtPlugin(absl::string_view name, absl::string_view path) {
  void* const library = dlopen(std::string(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::InternalError(absl::StrCat("the plugin does not load: ", dlerror()));
  const auto get = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"));
  if (get == nullptr) return absl::NotFoundError(absl::StrCat(path, " does not export GetPjrtApi"));
  const PJRT_Api* const api = get();
  if (api == nullptr) return absl::InternalError(absl::StrCat(path, ": GetPjrtApi returned nothing"));
  const absl::Status version = CheckVersion(path, api);
  if (!version.ok()) return version;
  const absl::Status set = SetPjrtApi(name, api);
  if (!set.ok()) return set;
  return api;
}

absl::StatusOr<bool> IsPjrtPluginInitialized(absl::string_view name) {
  const std::lock_guard<std::mutex> guard(Lock());
  const auto entry = Find(name);
  if (!entry.ok()) return entry.status();
  return (*entry)->initialized;
}

absl::Status InitializePjrtPlugin(absl::string_view name) {
  const std::lock_guard<std::mutex> guard(Lock());
  const auto entry = Find(name);
  if (!entry.ok()) return entry.status();
  if ((*entry)->initialized) {
    return absl::InvalidArgumentError(absl::StrCat("the PJRT plugin '", name, "' is initialised already"));
  }
  PJRT_Plugin_Initialize_Args args{};
  args.struct_size = PJRT_Plugin_Initialize_Args_STRUCT_SIZE;
  const PJRT_Api* const api = (*entry)->api;
  if (PJRT_Error* const error = api->PJRT_Plugin_Initialize(&args)) {
    return absl::InternalError(absl::StrCat("it did not start: ", TakeMessage(api, error)));
  }
  (*entry)->initialized = true;
  return absl::OkStatus();
}

}  // namespace pjrt

// What is needed of xla/pjrt/c_api_client/pjrt_c_api_client.h, which takes half a minute to compile. The destructor is the
// first virtual function of PjRtClient there too: deleting one through this declaration calls the same entry.
namespace xla {

class KeyValueStoreInterface;
class PjRtClient {
 public:
  virtual ~PjRtClient();
};
using PjRtValueType = std::variant<std::string, bool, int64_t, std::vector<int64_t>, float>;

absl::StatusOr<std::unique_ptr<PjRtClient>> WrapClientAroundCApi(
    const PJRT_Api* api, const absl::flat_hash_map<std::string, PjRtValueType>& options,
    std::shared_ptr<KeyValueStoreInterface> store);

absl::StatusOr<std::unique_ptr<PjRtClient>> GetCApiClient(
    absl::string_view name, const absl::flat_hash_map<std::string, PjRtValueType>& options,
    std::shared_ptr<KeyValueStoreInterface> store) {
  const auto api = pjrt::PjrtApi(name);
  if (!api.ok()) return api.status();
  return WrapClientAroundCApi(*api, options, std::move(store));
}

}  // namespace xla
