// The manifests of a run: each pod of an indexed job is a slot, with the variables that torchrun would set.
#include <algorithm>
#include <chrono>

#include "caftan/base/settings_io.hpp"
#include "caftan/launchers/internal/job_texts.hpp"
#include "caftan/launchers/internal/slot.hpp"
#include "job_size.hpp"

namespace caftan::launchers {
namespace {

constexpr const char* kSecretFile = "/etc/caftan/secret/cluster.secret";
constexpr const char* kOutput = "/run/caftan/runs";
constexpr const char* kPort = "29500";

/// Returns a name for objects: a letter in front, and short enough for a pod to append its number.
std::string object_name(const std::string& run) {
  std::string name = run.front() >= 'a' && run.front() <= 'z' ? run : "run-" + run;
  name.resize(std::min<std::size_t>(name.size(), 50));
  name.erase(name.find_last_not_of('-') + 1);
  return name;
}

std::string seconds(base::Duration duration) {
  return std::to_string(std::chrono::ceil<std::chrono::seconds>(duration).count());
}

/// A string of YAML in double quotes has the escapes of TOML.
std::string yaml(const std::string& text) { return quote_toml(text); }

std::string indented(const std::string& text, const std::string& by) {
  std::string lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines += (end == at ? "" : by) + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return lines;
}

std::string head(const char* version, const char* kind, const std::string& name) {
  return std::string("apiVersion: ") + version + "\nkind: " + kind + "\nmetadata:\n  name: " + name + "\n";
}

std::string service(const std::string& name) {
  return head("v1", "Service", name) +
         "spec:\n"
         "  clusterIP: None  # names lead to the pods themselves\n"
         "  publishNotReadyAddresses: true  # pods are ready once they have met\n"
         "  selector:\n"
         "    caftan-run: " +
         name +
         "\n"
         "  ports:\n"
         "    - name: coordinator\n"
         "      port: " +
         kPort + "\n";
}

std::string variables(const std::string& name, const std::string& pods) {
  return "            - name: RANK\n"
         "              valueFrom:\n"
         "                fieldRef:\n"
         "                  fieldPath: metadata.annotations['batch.kubernetes.io/job-completion-index']\n"
         "            - name: WORLD_SIZE\n"
         "              value: \"" +
         pods +
         "\"\n"
         "            - name: MASTER_ADDR\n"
         "              value: " +
         name + "-0." + name +
         "\n"
         "            - name: MASTER_PORT\n"
         "              value: \"" +
         kPort + "\"\n";
}

/// A pod has started once it has made its folder: file and secret are good, and the first pod has a name. It is ready
/// until the run has ended.
std::string probes(const app::RunSettings& run) {
  const std::string latest = std::string(kOutput) + "/latest/";
  return "          startupProbe:\n"
         "            exec:\n"
         "              command: [\"test\", \"-e\", \"" +
         latest +
         "resolved.toml\"]\n"
         "            periodSeconds: 1\n"
         "            failureThreshold: " +
         seconds(run.start_timeout + std::chrono::seconds(10)) +
         "\n"
         "          readinessProbe:\n"
         "            exec:\n"
         "              command: [\"test\", \"!\", \"-e\", \"" +
         latest + "summary.json\"]\n";
}

std::string container(const app::Application& application, const app::Plan& plan, const std::string& name,
                      const std::string& image) {
  return "        - name: run\n"
         "          image: " +
         yaml(image) +
         "\n"
         "          args: [\"run\", \"/etc/caftan/file/run.toml\"]\n"
         "          env:\n" +
         variables(name, std::to_string(slots_needed(application))) +
         "          ports:\n"
         "            - name: coordinator\n"
         "              containerPort: " +
         kPort +
         "\n"
         "          resources:\n"
         "            requests:\n"
         "              cpu: \"" +
         std::to_string(cores_of_a_host(application, plan)) + "\"\n" + probes(application.run) +
         "          securityContext:\n"
         "            allowPrivilegeEscalation: false\n"
         "          volumeMounts:\n"
         "            - name: file\n"
         "              mountPath: /etc/caftan/file\n"
         "            - name: secret\n"
         "              mountPath: /etc/caftan/secret\n"
         "            - name: output\n"
         "              mountPath: /run/caftan\n";
}

std::string job_manifest(const app::Application& application, const app::Plan& plan, const std::string& name,
                         const std::string& image) {
  const std::string pods = std::to_string(slots_needed(application));
  const app::RunSettings& run = application.run;
  return head("batch/v1", "Job", name) +
         "spec:\n"
         "  completionMode: Indexed\n"
         "  completions: " +
         pods + "\n  parallelism: " + pods +
         "\n"
         "  backoffLimit: 0  # a lost worker does not come back\n" +
         (run.wall ? "  activeDeadlineSeconds: " + seconds(longest_run(run)) + "\n" : "") +
         "  template:\n"
         "    metadata:\n"
         "      labels:\n"
         "        caftan-run: " +
         name +
         "\n"
         "    spec:\n"
         "      subdomain: " +
         name +
         "\n"
         "      restartPolicy: Never\n"
         "      terminationGracePeriodSeconds: " +
         seconds(run.stop_timeout + std::chrono::seconds(2)) +
         "\n"
         "      containers:\n" +
         container(application, plan, name, image) +
         "      volumes:\n"
         "        - name: file\n"
         "          configMap:\n"
         "            name: " +
         name +
         "\n"
         "        - name: secret\n"
         "          secret:\n"
         "            secretName: " +
         name +
         "\n"
         "            defaultMode: 256  # 0400\n"
         "        - name: output\n"
         "          emptyDir: {}\n";
}

}  // namespace

std::vector<std::string> kubernetes_settings() {
  return {"run.placement=hosts", "run.launcher=variables", std::string("cluster.secret_file=") + kSecretFile,
          std::string("output.dir=") + kOutput};
}

std::string kubernetes_manifests(const app::Application& application, const app::Plan& plan, const KubernetesJob& job) {
  const std::string name = object_name(application.run.name);
  const std::string image = job.image.empty() ? application.run.name + ":latest" : job.image;
  return "# A pod of " + application.run.name +
         " for each host of the file, or without [hosts] for each worker. Start it with kubectl apply -f.\n"
         "# The secret was made for this file: keep the file like a password.\n" +
         head("v1", "Secret", name) + "stringData:\n  cluster.secret: " + yaml(job.secret) + "\n---\n" +
         head("v1", "ConfigMap", name) + "data:\n  run.toml: |\n" + indented(job.resolved, "    ") + "---\n" +
         service(name) + "---\n" + job_manifest(application, plan, name, image);
}

}  // namespace caftan::launchers
