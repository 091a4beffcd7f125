// The container file of a program.
#include "caftan/launchers/internal/job_texts.hpp"

namespace caftan::launchers {

std::string container_file(const std::string& program) {
  return "# The image of " + program +
         ". Build it in a folder that holds the program and, as caftan-package, the installed package.\n"
         "FROM debian:12-slim\n"
         "COPY caftan-package /opt/caftan\n"
         "RUN apt-get update \\\n"
         " && apt-get install -y --no-install-recommends ca-certificates $(cat /opt/caftan/share/caftan/packages.txt) "
         "\\\n"
         " && rm -rf /var/lib/apt/lists/* \\\n"
         " && mkdir /opt/libtorch \\\n"
         " && /usr/bin/python3 /opt/caftan/share/caftan/libtorch.py /opt/caftan/share/caftan/wheels.lock "
         "/opt/libtorch\n"
         "ENV LD_LIBRARY_PATH=/opt/libtorch/torch/lib\n"
         "COPY " +
         program + " /usr/local/bin/" + program +
         "\n"
         "WORKDIR /run/caftan\n"
         "ENTRYPOINT [\"/usr/local/bin/" +
         program + "\"]\n";
}

}  // namespace caftan::launchers
