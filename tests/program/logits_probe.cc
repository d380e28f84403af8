// Writes the logits of prompts: logits_probe CHECKPOINT [fp64] < lines of token ids > raw [positions, vocabulary] of
// one prompt after another, fp32, or fp64 and computed so, in the byte order of the machine. For huggingface.py and
// pretrained.py.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <torch/types.h>

#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "nn/decoder.h"
#include "session/run/open_model.h"

int main(int argc, char** argv) {
  const bool wide = argc == 3 && std::string(argv[2]) == "fp64";
  if (argc != 2 && !wide) return 2;
  try {
    const auto opened = penstock::session::OpenModel({.from = argv[1], .text = false, .threads = 1});
    std::vector<at::Tensor> parameters;
    for (const auto& p : opened->spec.parameters) {
      const at::Tensor& parameter = opened->parameters.at(p.name);
      parameters.push_back(wide ? parameter.to(at::kDouble) : parameter);
    }
    const auto precision = wide ? penstock::model::Precision::fp64 : opened->precision;
    const at::NoGradGuard no_grad;
    for (std::string line; std::getline(std::cin, line);) {
      std::istringstream words(line);
      std::vector<int64_t> ids;
      for (int64_t id = 0; words >> id;) ids.push_back(id);
      penstock::nn::Decoder decoder(opened->spec, precision, parameters, static_cast<int64_t>(ids.size()));
      const at::Tensor logits =
          decoder.Append(torch::tensor(ids, at::kLong).unsqueeze(0), penstock::nn::HeadOutput::logits).contiguous();
      std::cout.write(static_cast<const char*>(logits.const_data_ptr()), static_cast<std::streamsize>(logits.nbytes()));
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return std::cout.flush() ? 0 : 1;
}
