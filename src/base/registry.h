// src/base/registry.h
//
// A named collection that files fill from static initialisers (modules are OBJECT libraries, so the linker keeps
// them). Registration happens before main() on one thread; afterwards the registry is read-only and may be read from
// any thread. Order of iteration is by name, whatever the link order.
//
//   struct Builder { static constexpr const char* kRegistryName = "schedule builder"; std::string name; ... };
//   const Register<Builder> kRegister{{.name = "1f1b", ...}};
//   Registry<Builder>::Find("1f1b")      // UserError with the nearest names when there is none
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"

namespace penstock {

template <typename T>
class Registry {
 public:
  static void Add(T entry) {
    auto& entries = Entries();
    std::string name = entry.name;
    if (!entries.emplace(name, std::move(entry)).second)
      throw InternalError(fmt::format("two entries named '{}' in the registry of {}s", name, T::kRegistryName));
  }
  static bool Has(std::string_view name) { return Entries().count(std::string(name)) != 0; }
  static const T& Find(std::string_view name) {
    const auto& entries = Entries();
    auto it = entries.find(std::string(name));
    if (it == entries.end())
      throw UserError("there is no {} named '{}'{}", T::kRegistryName, name, DidYouMean(name, Names()));
    return it->second;
  }
  static std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const auto& [name, entry] : Entries()) names.push_back(name);
    return names;
  }
  static const std::map<std::string, T>& All() { return Entries(); }

 private:
  static std::map<std::string, T>& Entries() {
    static std::map<std::string, T> entries;
    return entries;
  }
};

template <typename T>
struct Register {
  explicit Register(T entry) { Registry<T>::Add(std::move(entry)); }
};

}  // namespace penstock
