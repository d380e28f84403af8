// Prints the logits of prompts: logits_probe CHECKPOINT < lines of token ids. One line per prompt, the logits of all
// its positions one after another. For huggingface.py.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/types.h>

#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "nn/decoder.h"
#include "session/run/open_model.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    const auto opened = penstock::session::OpenModel({.from = argv[1], .threads = 1});
    std::vector<at::Tensor> parameters;
    for (const auto& p : opened->spec.parameters) parameters.push_back(opened->parameters.at(p.name));
    const at::NoGradGuard no_grad;
    for (std::string line; std::getline(std::cin, line);) {
      std::istringstream words(line);
      std::vector<int64_t> ids;
      for (int64_t id = 0; words >> id;) ids.push_back(id);
      penstock::nn::Decoder decoder(opened->spec, opened->precision, parameters, static_cast<int64_t>(ids.size()));
      const at::Tensor logits =
          decoder.Append(torch::tensor(ids, at::kLong).unsqueeze(0), penstock::nn::HeadOutput::logits)
              .contiguous()
              .view({-1});
      const float* const values = logits.const_data_ptr<float>();
      std::string text;
      for (int64_t i = 0; i < logits.numel(); ++i) text += fmt::format("{}{}", i == 0 ? "" : " ", values[i]);
      std::cout << text << "\n";
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
