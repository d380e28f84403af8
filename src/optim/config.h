// src/optim/config.h
//
// Section [optimizer]: see base/optimizer_config.h, where the planning side reads it without libtorch.
#pragma once

#include "base/optimizer_config.h"
