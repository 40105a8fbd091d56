// muDNN: all classes.
#pragma once

#include "mudnn_base.h"
#include "mudnn_blas.h"
#include "mudnn_loss.h"
#include "mudnn_math.h"
#include "mudnn_nn.h"
#include "mudnn_transformer.h"
