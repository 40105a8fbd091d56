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
  musaErrorInitializationError = 3,  // also: a device was used before this process was forked
  musaErrorInvalidConfiguration = 9,
  musaErrorInvalidDevicePointer = 17,
  musaErrorInvalidMemcpyDirection = 21,
  musaErrorInsufficientDriver = 35,
  musaErrorInvalidDeviceFunction = 98,
  musaErrorNoDevice = 100,
  musaErrorInvalidDevice = 101,
  musaErrorDeviceUninitialized = 201,  // an IPC handle opened by the process that made it
  musaErrorMapBufferObjectFailed = 205,
  musaErrorPeerAccessUnsupported = 217,
  musaErrorInvalidResourceHandle = 400,
  musaErrorIllegalState = 401,
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
  musaErrorStreamCaptureUnsupported = 900,
  musaErrorStreamCaptureInvalidated = 901,
  musaErrorStreamCaptureMerge = 902,
  musaErrorStreamCaptureUnmatched = 903,
  musaErrorStreamCaptureUnjoined = 904,
  musaErrorStreamCaptureIsolation = 905,
  musaErrorStreamCaptureImplicit = 906,
  musaErrorCapturedEvent = 907,
  musaErrorStreamCaptureWrongThread = 908,
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
// memory of each in MiB ("64", or "64,128" for devices of different sizes), MUSA_ARCH the profile
// (mp_21, mp_22, mp_31 = default), MUSA_VISIBLE_DEVICES which devices this process sees and in
// which order ("1,0"; an unknown entry hides itself and what follows).
MUSART_API musaError_t musaGetDeviceCount(int* count);
MUSART_API musaError_t musaGetDevice(int* device);
MUSART_API musaError_t musaSetDevice(int device);
MUSART_API musaError_t musaGetDeviceProperties(musaDeviceProp* prop, int device);
MUSART_API musaError_t musaDeviceSynchronize(void);
MUSART_API musaError_t musaDeviceCanAccessPeer(int* can_access, int device, int peer_device);
MUSART_API musaError_t musaDeviceEnablePeerAccess(int peer_device, unsigned int flags);
MUSART_API musaError_t musaDeviceDisablePeerAccess(int peer_device);
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

#define musaMemAttachGlobal 0x01u
#define musaMemAttachHost 0x02u

#define musaHostRegisterDefault 0x00u
#define musaHostRegisterPortable 0x01u
#define musaHostRegisterMapped 0x02u

struct musaStream;
typedef struct musaStream* musaStream_t;
struct musaEvent;
typedef struct musaEvent* musaEvent_t;

MUSART_API musaError_t musaMalloc(void** pointer, size_t bytes);  // 256-byte aligned
MUSART_API musaError_t musaFree(void* pointer);                   // null is allowed
MUSART_API musaError_t musaMallocManaged(void** pointer, size_t bytes, unsigned int flags);
MUSART_API musaError_t musaMallocHost(void** pointer, size_t bytes);
MUSART_API musaError_t musaHostAlloc(void** pointer, size_t bytes, unsigned int flags);
MUSART_API musaError_t musaFreeHost(void* pointer);
MUSART_API musaError_t musaHostRegister(void* pointer, size_t bytes, unsigned int flags);
MUSART_API musaError_t musaHostUnregister(void* pointer);
MUSART_API musaError_t musaHostGetDevicePointer(void** device_pointer, void* host_pointer,
                                                unsigned int flags);
MUSART_API musaError_t musaHostGetFlags(unsigned int* flags, void* host_pointer);
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

// ---- memory pools ----------------------------------------------------------------------------

// Memory in the order of a stream: a block freed on a stream is free for that stream's later work
// at once, for everybody else when the stream has come to the free.

struct musaMemPool;
typedef struct musaMemPool* musaMemPool_t;

typedef enum musaMemPoolAttr {
  musaMemPoolReuseFollowEventDependencies = 1,    // int, 1
  musaMemPoolReuseAllowOpportunistic = 2,         // int, 1: reuse what another stream has freed
  musaMemPoolReuseAllowInternalDependencies = 3,  // int, 1: ... even if that means waiting for it
  musaMemPoolAttrReleaseThreshold = 4,            // uint64_t bytes kept at a synchronization, 0
  musaMemPoolAttrReservedMemCurrent = 5,          // uint64_t, read only
  musaMemPoolAttrReservedMemHigh = 6,             // uint64_t, may be set to 0
  musaMemPoolAttrUsedMemCurrent = 7,              // uint64_t, read only
  musaMemPoolAttrUsedMemHigh = 8                  // uint64_t, may be set to 0
} musaMemPoolAttr;

MUSART_API musaError_t musaDeviceGetDefaultMemPool(musaMemPool_t* pool, int device);
MUSART_API musaError_t musaDeviceGetMemPool(musaMemPool_t* pool, int device);
MUSART_API musaError_t musaDeviceSetMemPool(int device, musaMemPool_t pool);
MUSART_API musaError_t musaMallocAsync(void** pointer, size_t bytes, musaStream_t stream);
MUSART_API musaError_t musaMallocFromPoolAsync(void** pointer, size_t bytes, musaMemPool_t pool,
                                               musaStream_t stream);
MUSART_API musaError_t musaFreeAsync(void* pointer, musaStream_t stream);
MUSART_API musaError_t musaMemPoolSetAttribute(musaMemPool_t pool, musaMemPoolAttr attribute,
                                               void* value);
MUSART_API musaError_t musaMemPoolGetAttribute(musaMemPool_t pool, musaMemPoolAttr attribute,
                                               void* value);
// Gives unused memory back to the device until no more than `keep` bytes are reserved.
MUSART_API musaError_t musaMemPoolTrimTo(musaMemPool_t pool, size_t keep);

// ---- between processes -----------------------------------------------------------------------

#define MUSA_IPC_HANDLE_SIZE 64
typedef struct musaIpcMemHandle {
  char reserved[MUSA_IPC_HANDLE_SIZE];
} musaIpcMemHandle_t;
typedef struct musaIpcEventHandle {
  char reserved[MUSA_IPC_HANDLE_SIZE];
} musaIpcEventHandle_t;

#define musaIpcMemLazyEnablePeerAccess 0x01u

// A handle stands for the whole allocation that holds `pointer`; opening it yields the
// allocation's beginning. It is valid while the process that made it lives and holds the memory.
MUSART_API musaError_t musaIpcGetMemHandle(musaIpcMemHandle_t* handle, void* pointer);
MUSART_API musaError_t musaIpcOpenMemHandle(void** pointer, musaIpcMemHandle_t handle,
                                            unsigned int flags);
MUSART_API musaError_t musaIpcCloseMemHandle(void* pointer);
MUSART_API musaError_t musaIpcGetEventHandle(musaIpcEventHandle_t* handle, musaEvent_t event);
MUSART_API musaError_t musaIpcOpenEventHandle(musaEvent_t* event, musaIpcEventHandle_t handle);

// ---- streams and events ----------------------------------------------------------------------

// The default stream is the null handle (of the current device), which musaStreamLegacy spells
// out: it waits for the device's blocking streams and they for it. musaStreamPerThread is a
// blocking stream of the calling thread's own.
//
// Work runs inside the call that enqueues it, unless MUSA_LAUNCH_BLOCKING=0: then every stream has
// a thread, calls return at once as on a card, and missing synchronization shows.
#define musaStreamLegacy ((musaStream_t)0x1)
#define musaStreamPerThread ((musaStream_t)0x2)

#define musaStreamDefault 0x00u
#define musaStreamNonBlocking 0x01u

#define musaEventDefault 0x00u
#define musaEventBlockingSync 0x01u
#define musaEventDisableTiming 0x02u
#define musaEventInterprocess 0x04u

#define musaEventWaitDefault 0x00u

#define musaEventRecordDefault 0x00u

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
MUSART_API musaError_t musaEventRecordWithFlags(musaEvent_t event, musaStream_t stream,
                                                unsigned int flags);
MUSART_API musaError_t musaEventQuery(musaEvent_t event);
MUSART_API musaError_t musaEventSynchronize(musaEvent_t event);
MUSART_API musaError_t musaEventElapsedTime(float* milliseconds, musaEvent_t start,
                                            musaEvent_t end);
MUSART_API musaError_t musaEventDestroy(musaEvent_t event);

// ---- graphs ----------------------------------------------------------------------------------

struct musaGraph;
typedef struct musaGraph* musaGraph_t;
struct musaGraphNode;
typedef struct musaGraphNode* musaGraphNode_t;
struct musaGraphExec;
typedef struct musaGraphExec* musaGraphExec_t;

typedef enum musaStreamCaptureMode {
  musaStreamCaptureModeGlobal = 0,       // no thread may make an unsafe call (an allocation, say)
  musaStreamCaptureModeThreadLocal = 1,  // ... not the capturing thread
  musaStreamCaptureModeRelaxed = 2
} musaStreamCaptureMode;

typedef enum musaStreamCaptureStatus {
  musaStreamCaptureStatusNone = 0,
  musaStreamCaptureStatusActive = 1,
  musaStreamCaptureStatusInvalidated = 2
} musaStreamCaptureStatus;

typedef enum musaGraphNodeType {
  musaGraphNodeTypeKernel = 0,
  musaGraphNodeTypeMemcpy = 1,
  musaGraphNodeTypeMemset = 2,
  musaGraphNodeTypeHost = 3,
  musaGraphNodeTypeEmpty = 5
} musaGraphNodeType;

// Between Begin and End the stream's work is recorded instead of run; so is that of streams that
// wait for an event of it. Each End takes one graph.
MUSART_API musaError_t musaStreamBeginCapture(musaStream_t stream, musaStreamCaptureMode mode);
MUSART_API musaError_t musaStreamEndCapture(musaStream_t stream, musaGraph_t* graph);
MUSART_API musaError_t musaStreamIsCapturing(musaStream_t stream, musaStreamCaptureStatus* status);
MUSART_API musaError_t musaStreamGetCaptureInfo(musaStream_t stream,
                                                musaStreamCaptureStatus* status,
                                                unsigned long long* id);
MUSART_API musaError_t musaThreadExchangeStreamCaptureMode(musaStreamCaptureMode* mode);
// `nodes` null: only the number. Else up to *count nodes are written and *count says how many.
MUSART_API musaError_t musaGraphGetNodes(musaGraph_t graph, musaGraphNode_t* nodes, size_t* count);
MUSART_API musaError_t musaGraphNodeGetType(musaGraphNode_t node, musaGraphNodeType* type);
MUSART_API musaError_t musaGraphInstantiate(musaGraphExec_t* exec, musaGraph_t graph,
                                            unsigned long long flags);
MUSART_API musaError_t musaGraphLaunch(musaGraphExec_t exec, musaStream_t stream);
MUSART_API musaError_t musaGraphExecDestroy(musaGraphExec_t exec);
MUSART_API musaError_t musaGraphDestroy(musaGraph_t graph);

// ---- kernels ---------------------------------------------------------------------------------

typedef struct musaFuncAttributes {
  size_t sharedSizeBytes;  // static
  size_t constSizeBytes;
  size_t localSizeBytes;
  int maxThreadsPerBlock;
  int numRegs;
  int ptxVersion;
  int binaryVersion;
  int cacheModeCA;
  int maxDynamicSharedSizeBytes;
  int preferredShmemCarveout;
} musaFuncAttributes;

typedef enum musaFuncAttribute {
  musaFuncAttributeMaxDynamicSharedMemorySize = 8,
  musaFuncAttributePreferredSharedMemoryCarveout = 9
} musaFuncAttribute;

#define musaOccupancyDefault 0x00u
#define musaOccupancyDisableCachingOverride 0x01u

// `function` is a __global__ function's address; musaErrorInvalidDeviceFunction for any other.
MUSART_API musaError_t musaFuncGetAttributes(musaFuncAttributes* attributes, const void* function);
MUSART_API musaError_t musaFuncSetAttribute(const void* function, musaFuncAttribute attribute,
                                            int value);
MUSART_API musaError_t musaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                                     const void* function,
                                                                     int block_size,
                                                                     size_t dynamic_shared);
MUSART_API musaError_t musaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* function, int block_size, size_t dynamic_shared, unsigned int flags);

#ifdef __cplusplus
}  // extern "C"
#endif
