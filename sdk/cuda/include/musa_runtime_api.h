// On CUDA the runtime's handles are CUDA's own: a launch in a .mu source takes a musaStream_t as it
// is. Every source for this target is compiled with this header in front (-include, or as the first
// of the precompiled ones), so that it is read before any other header can bring the shared one.
#pragma once

#define musaStream CUstream_st
#define musaEvent CUevent_st
#define musaMemPool CUmemPoolHandle_st
#define musaGraph CUgraph_st
#define musaGraphNode CUgraphNode_st
#define musaGraphExec CUgraphExec_st
#include "../../include/musa_runtime_api.h"
#undef musaStream
#undef musaEvent
#undef musaMemPool
#undef musaGraph
#undef musaGraphNode
#undef musaGraphExec

#ifdef __cplusplus
// int2, float4, dim3 ... are CUDA's, too. The shared header of them is read where nobody looks, and
// by its #pragma once nowhere else.
#include <vector_functions.h>
#include <vector_types.h>

namespace musa::cuda::not_used {
#include "../../include/musa_vector_types.h"
}
#endif
