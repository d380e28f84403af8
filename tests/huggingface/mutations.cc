#include "huggingface/mutations.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

namespace penstock::huggingface {
namespace {

using Json = nlohmann::ordered_json;

size_t Below(Random& random, size_t n) { return n == 0 ? 0 : random() % n; }

template <typename T, size_t n>
const T& OneOf(const T (&items)[n], Random& random) {
  return items[random() % n];
}

constexpr std::string_view kTokens[] = {"{",
                                        "}",
                                        "[",
                                        "]",
                                        ",",
                                        ":",
                                        "\"",
                                        "\\",
                                        "0",
                                        "1",
                                        "-1",
                                        "2",
                                        "7",
                                        "8",
                                        "12",
                                        "null",
                                        "true",
                                        "false",
                                        "1e3",
                                        "1e30",
                                        "1e400",
                                        "-0",
                                        "0.5",
                                        "NaN",
                                        "Infinity",
                                        "9223372036854775807",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "1000000000000",
                                        "65536",
                                        "67108864",
                                        "\"F32\"",
                                        "\"F64\"",
                                        "\"BF16\"",
                                        "\"F16\"",
                                        "\"I64\"",
                                        "\"U8\"",
                                        "\"BOOL\"",
                                        "\"gpt2\"",
                                        "\"llama\"",
                                        "\"mistral\"",
                                        "\"relu\"",
                                        "\"linear\"",
                                        "\"llama3\"",
                                        "\"yarn\"",
                                        "\"lm_head.weight\"",
                                        "\"model.norm.weight\"",
                                        "\"transformer.wte.weight\"",
                                        "\"model.safetensors\"",
                                        "\"../config.json\"",
                                        "\"\"",
                                        "\"__metadata__\"",
                                        "\"dtype\"",
                                        "\"shape\"",
                                        "\"data_offsets\"",
                                        "\"weight_map\"",
                                        "[0,0]",
                                        "[8,4]",
                                        "[-4,0]",
                                        "[[[[[[[[",
                                        "{\"a\":",
                                        "\xff",
                                        "\xef\xbb\xbf",
                                        "\\u0000",
                                        "\\ud800",
                                        "/*",
                                        " ",
                                        "\n",
                                        std::string_view("\0", 1)};

Json Value(Random& random) {
  static const Json values[] = {nullptr,
                                true,
                                false,
                                0,
                                1,
                                2,
                                3,
                                4,
                                5,
                                6,
                                8,
                                11,
                                12,
                                16,
                                24,
                                100,
                                65536,
                                67108864,
                                -1,
                                -4,
                                1000000000000,
                                INT64_MAX,
                                UINT64_MAX,
                                INT64_MIN,
                                1e30,
                                0.5,
                                1.5,
                                2.0,
                                1e-6,
                                1e308,
                                "",
                                "F32",
                                "F64",
                                "BF16",
                                "F16",
                                "I64",
                                "U8",
                                "F8_E4M3",
                                "gpt2",
                                "llama",
                                "mistral",
                                "relu",
                                "gelu_new",
                                "silu",
                                "linear",
                                "llama3",
                                "yarn",
                                "default",
                                "lm_head.weight",
                                "wte.weight",
                                "config.json",
                                "model.safetensors",
                                "model-00001-of-00002.safetensors",
                                "..",
                                "a/b",
                                Json::array(),
                                Json::object(),
                                {1},
                                {0, 0},
                                {0, 4},
                                {4, 0},
                                {8, 8},
                                {INT64_MAX, 4},
                                {2, 3, 4},
                                {{"a", 1}},
                                {{"rope_type", "linear"}, {"factor", 4}}};
  return OneOf(values, random);
}

std::string FlippedBytes(std::string text, Random& random) {
  for (size_t i = 0, n = 1 + Below(random, 3); i < n && !text.empty(); ++i) {
    char& c = text[Below(random, text.size())];
    c = random() % 2 == 0 ? static_cast<char>(random()) : static_cast<char>(c ^ (1 << (random() % 8)));
  }
  return text;
}

std::string DamagedText(std::string text, Random& random, std::string& what) {
  const size_t at = Below(random, text.size()), length = 1 + Below(random, 32);
  switch (random() % 8) {
    case 0:
      what += " bytes";
      return FlippedBytes(text, random);
    case 1:
      what += " inserted";
      return text.insert(at, OneOf(kTokens, random));
    case 2:
      what += " replaced";
      return text.replace(at, std::min(length, text.size() - at), OneOf(kTokens, random));
    case 3:
      what += " deleted";
      return text.erase(at, length);
    case 4:
      what += " cut";
      return text.substr(0, at);
    case 5:
      what += " doubled";
      return text.insert(Below(random, text.size()), text.substr(at, 2 * length));
    case 6: {
      what += " digit";
      const size_t digit = text.find_first_of("0123456789", at);
      if (digit != std::string::npos) text[digit] = static_cast<char>('0' + random() % 10);
      return text;
    }
    default: {  // a whole word by a token: stays JSON more often
      what += " word";
      const std::string_view ends = ",:{}[] \n";
      const size_t begin = std::min(text.find_first_not_of(ends, at), text.size());
      const size_t end = std::min(text.find_first_of(ends, begin), text.size());
      return text.replace(begin, end - begin, OneOf(kTokens, random));
    }
  }
}

// Still JSON: one value or key of it is another, is gone, or is there twice.
std::string DamagedJson(const std::string& text, Random& random, std::string& what) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_structured() || json.empty()) return DamagedText(text, random, what);
  Json* node = &json;
  while (true) {
    const size_t child = Below(random, node->size());
    Json& next = node->is_object() ? std::next(node->begin(), static_cast<int64_t>(child)).value() : (*node)[child];
    if (next.is_structured() && !next.empty() && random() % 8 != 0) {
      node = &next;
      continue;
    }
    if (node->is_array()) {
      what += " element " + next.dump(-1, ' ', true, Json::error_handler_t::replace);
      switch (random() % 4) {
        case 0:
          node->erase(child);
          break;
        case 1:
          node->insert(node->begin() + static_cast<int64_t>(child), Json(next));
          break;
        default:
          next = Value(random);
      }
      break;
    }
    const std::string key = std::next(node->begin(), static_cast<int64_t>(child)).key();
    what += " key " + key;
    switch (random() % 6) {
      case 0:
        node->erase(key);
        break;
      case 1: {  // under another name
        Json value = next;
        node->erase(key);
        (*node)[random() % 2 == 0 ? key + "x" : Value(random).dump()] = std::move(value);
        break;
      }
      case 2:  // the value of another key
        next = Json(std::next(node->begin(), static_cast<int64_t>(Below(random, node->size()))).value());
        break;
      case 3:
        if (next.is_number_integer()) {
          next = next.get<int64_t>() + (random() % 2 == 0 ? 1 : -1);
          break;
        }
        [[fallthrough]];
      default:
        next = Value(random);
    }
    break;
  }
  return json.dump(random() % 2 == 0 ? 2 : -1, ' ', false, Json::error_handler_t::replace);
}

std::string Damaged(const std::string& text, Random& random, std::string& what) {
  return random() % 3 != 0 ? DamagedJson(text, random, what) : DamagedText(text, random, what);
}

// The header, with its length set right or not; or the length; or the data.
std::string DamagedSafetensors(const std::string& bytes, Random& random, std::string& what) {
  uint64_t length = 0;
  for (size_t i = std::min<size_t>(bytes.size(), 8); i-- > 0;) length = length << 8 | static_cast<uint8_t>(bytes[i]);
  if (bytes.size() < 8 || length > bytes.size() - 8) return DamagedText(bytes, random, what);
  const std::string header = bytes.substr(8, length), data = bytes.substr(8 + length);
  switch (random() % 10) {
    case 0:
      what += " length";
      return FlippedBytes(bytes.substr(0, 8), random) + header + data;
    case 1:
      what += " data";
      return bytes.substr(0, 8 + length) + FlippedBytes(data, random);
    case 2:
      what += " data";
      return bytes.substr(0, 8 + length) + DamagedText(data, random, what);
    case 3:
      what += " anywhere";
      return DamagedText(bytes, random, what);
    default:
      break;
  }
  what += " header";
  std::string changed = Damaged(header, random, what);
  std::string prefix = bytes.substr(0, 8);
  if (random() % 8 != 0) {
    for (size_t i = 0; i < 8; ++i) prefix[i] = static_cast<char>(changed.size() >> (8 * i));
  } else {
    what += " with the old length";
  }
  return prefix + changed + data;
}

bool EndsWith(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

void DamageOnce(Folder& folder, const std::vector<Folder>& others, Random& random, std::string& what) {
  if (folder.empty()) return;
  const auto any = [&](Folder& of) { return std::next(of.begin(), static_cast<int64_t>(Below(random, of.size()))); };
  const auto at = any(folder);
  auto& [name, node] = *at;
  what += what.empty() ? name : "; " + name;
  if (random() % 8 != 0) {
    if (node.kind == Kind::file)
      node.bytes = EndsWith(name, ".safetensors") ? DamagedSafetensors(node.bytes, random, what)
                                                  : Damaged(node.bytes, random, what);
    return;
  }
  switch (random() % 6) {
    case 0:
      what += " removed";
      folder.erase(at);
      break;
    case 1:
      what += " emptied";
      node = {};
      break;
    case 2: {
      const auto other = any(folder);
      what += " swapped with " + other->first;
      std::swap(node, other->second);
      break;
    }
    case 3: {  // a file of another folder, of the same name if there is one
      const Folder& from = others[Below(random, others.size())];
      const auto same = from.find(name);
      what += " of another folder";
      node = same != from.end() ? same->second
                                : std::next(from.begin(), static_cast<int64_t>(Below(random, from.size())))->second;
      break;
    }
    case 4:
      what += " copied to another name";
      folder[random() % 2 == 0 ? "model.safetensors" : "model.safetensors.index.json"] = Node(node);
      break;
    default:
      node = {.kind = static_cast<Kind>(1 + random() % 5)};
      what += fmt::format(" is of kind {}", static_cast<int>(node.kind));
  }
}

}  // namespace

std::string Damage(Folder& folder, const std::vector<Folder>& others, Random& random) {
  std::string what;
  for (size_t i = 0, n = 1 + (random() % 3 == 0 ? Below(random, 3) : 0); i < n; ++i)
    DamageOnce(folder, others, random, what);
  return what;
}

}  // namespace penstock::huggingface
