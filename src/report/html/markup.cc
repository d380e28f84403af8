#include "report/html/markup.h"

#include "base/utf8.h"

namespace penstock::report::html {

std::string Escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const char c = text[0];
    if (length == 0 || (length == 1 && ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f)))
      out += "\xef\xbf\xbd";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else
      out += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string Table::Print(size_t shown) const {
  std::string out;
  const auto print = [&](size_t from, size_t to) {
    Add(out, "<div class=\"scroll\"><table><caption>{}</caption><thead><tr>", Escape(caption));
    for (const std::string& h : head)
      Add(out, "<th scope=\"col\"{}>{}</th>", h.starts_with('<') ? " class=\"t\"" : "",
          Escape(h.starts_with('<') ? h.substr(1) : h));
    out += "</tr></thead><tbody>\n";
    for (size_t i = from; i < to; ++i) {
      out += "<tr>";
      for (size_t c = 0; c < rows[i].size(); ++c)
        Add(out, "<td{}>{}</td>", c < head.size() && head[c].starts_with('<') ? " class=\"t\"" : "", rows[i][c]);
      out += "</tr>\n";
    }
    out += "</tbody></table></div>\n";
  };
  print(0, std::min(shown, rows.size()));
  if (rows.size() > shown) {
    Add(out, "<details><summary>{} more rows</summary>\n", rows.size() - shown);
    print(shown, rows.size());
    out += "</details>\n";
  }
  return out;
}

std::string Swatch(std::string_view colour) {
  return fmt::format("<span class=\"swatch\" style=\"background:{}\"></span>", colour);
}

std::string InWords(std::string_view name) {
  std::string words(name);
  for (char& c : words)
    if (c == '_') c = ' ';
  return words;
}

std::string Percent(double share) { return fmt::format("{:.1f}\u00a0%", 100 * share); }

}  // namespace penstock::report::html
