# Installed libraries, CMake package and pkg-config: written with the facade.
