#include "cli/command.h"

int main(int argc, char** argv) { return penstock::cli::Main(argc, argv, PENSTOCK_VERSION); }
