#include "report/appended_file.h"

namespace penstock::report {

std::unique_ptr<WritableFile> BeginAnew(const std::string& path, std::string_view kept, FileSystem& files) {
  // The open file keeps its identity through the rename, so that the old one is there until the new one is complete.
  const std::string temporary = path + ".new";
  auto file = files.Create(temporary);
  file->Append(kept);
  file->Sync();
  files.Rename(temporary, path, /*overwrite=*/true);
  files.SyncFolder(FolderOf(path));
  return file;
}

}  // namespace penstock::report
