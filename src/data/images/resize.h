// src/data/images/resize.h
//
// Bilinear interpolation; when a side shrinks, the triangle is as much wider, so that every pixel counts (what Pillow
// calls BILINEAR and torchvision `antialias=True`). Whole numbers only: the same bytes on every machine.
#pragma once

#include "data/images/png.h"

namespace penstock::data::images {

Picture Resize(const Picture& picture, int32_t height, int32_t width);

}  // namespace penstock::data::images
