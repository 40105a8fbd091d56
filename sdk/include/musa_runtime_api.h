// MUSA runtime, C interface: the calls a PyTorch backend makes. Names, values and error behaviour
// follow the CUDA runtime, as the toolkit's own do. Only what the stand-in implements is declared.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MUSART_VERSION 40300
#define MUSART_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

// ---- errors ----------------------------------------------------------------------------------

typedef enum musaError {
  musaSuccess = 0,
  musaErrorInvalidValue = 1,
  musaErrorMemoryAllocation = 2,
  musaErrorInitializationError = 3,
  musaErrorInvalidConfiguration = 9,
  musaErrorInvalidDevicePointer = 17,
  musaErrorInvalidMemcpyDirection = 21,
  musaErrorInsufficientDriver = 35,
  musaErrorInvalidDeviceFunction = 98,
  musaErrorNoDevice = 100,
  musaErrorInvalidDevice = 101,
  musaErrorPeerAccessUnsupported = 217,
  musaErrorInvalidResourceHandle = 400,
  musaErrorNotReady = 600,
  musaErrorIllegalAddress = 700,
  musaErrorLaunchOutOfResources = 701,
  musaErrorLaunchTimeout = 702,
  musaErrorPeerAccessAlreadyEnabled = 704,
  musaErrorPeerAccessNotEnabled = 705,
  musaErrorAssert = 710,
  musaErrorHostMemoryAlreadyRegistered = 712,
  musaErrorHostMemoryNotRegistered = 713,
  musaErrorLaunchFailure = 719,
  musaErrorNotPermitted = 800,
  musaErrorNotSupported = 801,
  musaErrorUnknown = 999
} musaError_t;

MUSART_API const char* musaGetErrorName(musaError_t error);
MUSART_API const char* musaGetErrorString(musaError_t error);
// The last error of the calling thread. Get clears it, Peek does not; an error that a kernel left
// behind (illegal address, launch failure ...) cannot be cleared and is returned by every later
// call.
MUSART_API musaError_t musaGetLastError(void);
MUSART_API musaError_t musaPeekAtLastError(void);

// ---- devices ---------------------------------------------------------------------------------

typedef struct musaUUID {
  char bytes[16];
} musaUUID_t;

typedef struct musaDeviceProp {
  char name[256];
  musaUUID_t uuid;
  size_t totalGlobalMem;  // bytes
  size_t sharedMemPerBlock;
  size_t sharedMemPerBlockOptin;
  size_t sharedMemPerMultiprocessor;
  int regsPerBlock;
  int regsPerMultiprocessor;
  int warpSize;
  size_t memPitch;
  int maxThreadsPerBlock;
  int maxThreadsPerMultiProcessor;
  int maxBlocksPerMultiProcessor;
  int maxThreadsDim[3];
  int maxGridSize[3];
  int clockRate;  // kHz
  int memoryClockRate;
  int memoryBusWidth;
  int l2CacheSize;
  size_t totalConstMem;
  int major;
  int minor;
  int multiProcessorCount;
  int integrated;
  int canMapHostMemory;
  int concurrentKernels;
  int asyncEngineCount;
  int unifiedAddressing;
  int managedMemory;
  int streamPrioritiesSupported;
  int isMultiGpuBoard;
  int ECCEnabled;
  int pciDomainID;
  int pciBusID;
  int pciDeviceID;
} musaDeviceProp;

// TORCH_MUSA_HOST_DEVICES sets the number of devices (default 2), TORCH_MUSA_HOST_MEMORY the
// memory of each in MiB, MUSA_ARCH the profile (mp_21, mp_22, mp_31 = default).
MUSART_API musaError_t musaGetDeviceCount(int* count);
MUSART_API musaError_t musaGetDevice(int* device);
MUSART_API musaError_t musaSetDevice(int device);
MUSART_API musaError_t musaGetDeviceProperties(musaDeviceProp* prop, int device);
MUSART_API musaError_t musaDeviceSynchronize(void);
MUSART_API musaError_t musaDeviceCanAccessPeer(int* can_access, int device, int peer_device);
MUSART_API musaError_t musaDeviceEnablePeerAccess(int peer_device, unsigned int flags);
// Lower numbers are higher priorities.
MUSART_API musaError_t musaDeviceGetStreamPriorityRange(int* least, int* greatest);
MUSART_API musaError_t musaDriverGetVersion(int* version);
MUSART_API musaError_t musaRuntimeGetVersion(int* version);

// ---- memory ----------------------------------------------------------------------------------

typedef enum musaMemcpyKind {
  musaMemcpyHostToHost = 0,
  musaMemcpyHostToDevice = 1,
  musaMemcpyDeviceToHost = 2,
  musaMemcpyDeviceToDevice = 3,
  musaMemcpyDefault = 4
} musaMemcpyKind;

typedef enum musaMemoryType {
  musaMemoryTypeUnregistered = 0,
  musaMemoryTypeHost = 1,
  musaMemoryTypeDevice = 2,
  musaMemoryTypeManaged = 3
} musaMemoryType;

typedef struct musaPointerAttributes {
  musaMemoryType type;
  int device;           // -1 (musaInvalidDeviceId) for memory the runtime does not know
  void* devicePointer;  // null where a kernel could not use the memory
  void* hostPointer;    // null where the host could not
} musaPointerAttributes;

#define musaInvalidDeviceId (-1)

#define musaHostAllocDefault 0x00u
#define musaHostAllocPortable 0x01u
#define musaHostAllocMapped 0x02u
#define musaHostAllocWriteCombined 0x04u

#define musaHostRegisterDefault 0x00u
#define musaHostRegisterPortable 0x01u
#define musaHostRegisterMapped 0x02u

struct musaStream;
typedef struct musaStream* musaStream_t;
struct musaEvent;
typedef struct musaEvent* musaEvent_t;

MUSART_API musaError_t musaMalloc(void** pointer, size_t bytes);  // 256-byte aligned
MUSART_API musaError_t musaFree(void* pointer);                   // null is allowed
MUSART_API musaError_t musaMallocHost(void** pointer, size_t bytes);
MUSART_API musaError_t musaHostAlloc(void** pointer, size_t bytes, unsigned int flags);
MUSART_API musaError_t musaFreeHost(void* pointer);
MUSART_API musaError_t musaHostRegister(void* pointer, size_t bytes, unsigned int flags);
MUSART_API musaError_t musaHostUnregister(void* pointer);
MUSART_API musaError_t musaHostGetDevicePointer(void** device_pointer, void* host_pointer,
                                                unsigned int flags);
MUSART_API musaError_t musaMemGetInfo(size_t* free_bytes, size_t* total_bytes);
MUSART_API musaError_t musaPointerGetAttributes(musaPointerAttributes* attributes,
                                                const void* pointer);

MUSART_API musaError_t musaMemcpy(void* dst, const void* src, size_t bytes, musaMemcpyKind kind);
MUSART_API musaError_t musaMemcpyAsync(void* dst, const void* src, size_t bytes,
                                       musaMemcpyKind kind, musaStream_t stream);
MUSART_API musaError_t musaMemcpyPeer(void* dst, int dst_device, const void* src, int src_device,
                                      size_t bytes);
MUSART_API musaError_t musaMemcpyPeerAsync(void* dst, int dst_device, const void* src,
                                           int src_device, size_t bytes, musaStream_t stream);
MUSART_API musaError_t musaMemset(void* pointer, int value, size_t bytes);
MUSART_API musaError_t musaMemsetAsync(void* pointer, int value, size_t bytes, musaStream_t stream);

// ---- streams and events ----------------------------------------------------------------------

// The default stream is the null handle (of the current device); the two named ones are its
// explicit spellings.
#define musaStreamLegacy ((musaStream_t)0x1)
#define musaStreamPerThread ((musaStream_t)0x2)

#define musaStreamDefault 0x00u
#define musaStreamNonBlocking 0x01u

#define musaEventDefault 0x00u
#define musaEventBlockingSync 0x01u
#define musaEventDisableTiming 0x02u
#define musaEventInterprocess 0x04u

#define musaEventWaitDefault 0x00u

typedef void (*musaHostFn_t)(void* user_data);

MUSART_API musaError_t musaStreamCreate(musaStream_t* stream);
MUSART_API musaError_t musaStreamCreateWithFlags(musaStream_t* stream, unsigned int flags);
MUSART_API musaError_t musaStreamCreateWithPriority(musaStream_t* stream, unsigned int flags,
                                                    int priority);
MUSART_API musaError_t musaStreamDestroy(musaStream_t stream);
MUSART_API musaError_t musaStreamSynchronize(musaStream_t stream);
MUSART_API musaError_t musaStreamQuery(musaStream_t stream);
MUSART_API musaError_t musaStreamWaitEvent(musaStream_t stream, musaEvent_t event,
                                           unsigned int flags);
MUSART_API musaError_t musaStreamGetPriority(musaStream_t stream, int* priority);
MUSART_API musaError_t musaStreamGetFlags(musaStream_t stream, unsigned int* flags);
MUSART_API musaError_t musaLaunchHostFunc(musaStream_t stream, musaHostFn_t function,
                                          void* user_data);

MUSART_API musaError_t musaEventCreate(musaEvent_t* event);
MUSART_API musaError_t musaEventCreateWithFlags(musaEvent_t* event, unsigned int flags);
MUSART_API musaError_t musaEventRecord(musaEvent_t event, musaStream_t stream);
MUSART_API musaError_t musaEventQuery(musaEvent_t event);
MUSART_API musaError_t musaEventSynchronize(musaEvent_t event);
MUSART_API musaError_t musaEventElapsedTime(float* milliseconds, musaEvent_t start,
                                            musaEvent_t end);
MUSART_API musaError_t musaEventDestroy(musaEvent_t event);

#ifdef __cplusplus
}  // extern "C"
#endif
