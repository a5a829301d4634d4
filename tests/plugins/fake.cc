// A PJRT plugin that refuses, for tests/plugins: compiled with MAJOR, MINOR, and what each entry returns.

#include <cstring>

#include "xla/pjrt/c/pjrt_c_api.h"

struct PJRT_Error {
  const char* text;
};

namespace {
PJRT_Error initialize{"the driver is too old"};
PJRT_Error create{"no such accelerator"};
}  // namespace

extern "C" const PJRT_Api* GetPjrtApi() {
#ifdef NO_TABLE
  return nullptr;
#else
  static PJRT_Api api;
  api.struct_size = PJRT_Api_STRUCT_SIZE;
  api.pjrt_api_version.struct_size = PJRT_Api_Version_STRUCT_SIZE;
  api.pjrt_api_version.major_version = MAJOR;
  api.pjrt_api_version.minor_version = MINOR;
  api.PJRT_Plugin_Initialize = [](PJRT_Plugin_Initialize_Args*) -> PJRT_Error* { return INITIALIZE; };
  api.PJRT_Client_Create = [](PJRT_Client_Create_Args*) -> PJRT_Error* { return &create; };
  api.PJRT_Error_Destroy = [](PJRT_Error_Destroy_Args*) {};
  api.PJRT_Error_Message = [](PJRT_Error_Message_Args* a) {
    a->message = a->error->text;
    a->message_size = std::strlen(a->error->text);
  };
  api.PJRT_Error_GetCode = [](PJRT_Error_GetCode_Args* a) -> PJRT_Error* {
    a->code = PJRT_Error_Code_UNAVAILABLE;
    return nullptr;
  };
  return &api;
#endif
}
