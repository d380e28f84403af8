#include "base/nearest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace penstock {

int EditDistance(std::string_view a, std::string_view b) {
  const size_t n = a.size(), m = b.size();
  std::vector<std::vector<int>> d(n + 1, std::vector<int>(m + 1));
  for (size_t i = 0; i <= n; ++i) d[i][0] = static_cast<int>(i);
  for (size_t j = 0; j <= m; ++j) d[0][j] = static_cast<int>(j);
  for (size_t i = 1; i <= n; ++i) {
    for (size_t j = 1; j <= m; ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[n][m];
}

std::string DidYouMean(std::string_view name, const std::vector<std::string>& candidates) {
  if (candidates.empty()) return "";
  int best = -1;
  const std::string* nearest = nullptr;
  for (const std::string& c : candidates) {
    const int distance = EditDistance(name, c);
    if (nearest == nullptr || distance < best) {
      best = distance;
      nearest = &c;
    }
  }
  if (best <= std::max<int>(2, static_cast<int>(name.size()) / 3)) return fmt::format("; did you mean '{}'?", *nearest);
  std::vector<std::string> shown(candidates.begin(), candidates.begin() + std::min<size_t>(candidates.size(), 20));
  return fmt::format("; known: {}{}", fmt::join(shown, ", "), candidates.size() > 20 ? ", ..." : "");
}

}  // namespace penstock
