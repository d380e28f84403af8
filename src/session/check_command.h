// src/session/check_command.h
//
// `penstock check CONFIG|SCHEDULE` runs the verifier; `penstock config` documents the settings or prints a resolved
// configuration. Both need no libtorch.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace penstock::session {

struct CheckOptions {
  std::string target;  // a configuration (*.toml) or a schedule file
  std::vector<std::string> assignments;
  bool json = false;
};
// 0: sound under channelled transport and whatever the contract promises; 2: not, with the reasons on `out`.
int RunCheck(const CheckOptions& options, std::ostream& out);

struct ConfigOptions {
  std::string config;  // empty: documentation of all keys
  std::vector<std::string> assignments;
  bool markdown = false;
  bool json = false;
};
int RunConfig(const ConfigOptions& options, std::ostream& out);

}  // namespace penstock::session
