#include "cli/commands.h"

int main(int argc, char** argv) { return angelia::cli::run(argc, argv); }
