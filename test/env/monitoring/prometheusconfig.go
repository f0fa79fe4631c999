package monitoring

import (
	"os"
	"path/filepath"

	"github.com/prometheus/common/model"
	"golang.org/x/crypto/bcrypt"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/test/env/workload"
)

const (
	configFile    = "prometheus.yml"
	webConfigFile = "web.yml"
)

// object is a mapping of a configuration file.
type object = map[string]any

func (o *PrometheusOptions) writeFiles(home, kubeconfig string, web webFile) error {
	if err := writeYAML(filepath.Join(home, configFile), o.config(kubeconfig)); err != nil {
		return err
	}
	content, err := web.content()
	if err != nil {
		return err
	}
	return writeYAML(filepath.Join(home, webConfigFile), content)
}

func writeYAML(path string, content object) error {
	data, err := yaml.Marshal(content)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// config returns the configuration of a Prometheus that has found a kubeconfig.
func (o *PrometheusOptions) config(kubeconfig string) object {
	content := object{
		"global": object{
			"scrape_interval": model.Duration(o.ScrapeInterval).String(),
			"scrape_timeout":  model.Duration(o.ScrapeTimeout).String(),
		},
	}
	scrapes := []object{{
		"job_name":              "pods",
		"kubernetes_sd_configs": []object{o.discovery(kubeconfig)},
		"relabel_configs":       relabelling(),
	}}
	if len(o.Targets) > 0 {
		scrapes = append(scrapes, object{
			"job_name": "targets", "honor_labels": true, "static_configs": []object{{"targets": o.Targets}},
		})
	}
	content["scrape_configs"] = scrapes
	var writes []object
	for _, write := range o.RemoteWrite {
		writes = append(writes, write.config())
	}
	if len(writes) > 0 {
		content["remote_write"] = writes
	}
	if o.History > 0 {
		content["storage"] = object{"tsdb": object{"out_of_order_time_window": model.Duration(o.History).String()}}
	}
	return content
}

func (o *PrometheusOptions) discovery(kubeconfig string) object {
	discovery := object{"role": "pod", "kubeconfig_file": kubeconfig}
	if o.Selector != "" {
		discovery["selectors"] = []object{{"role": "pod", "label": o.Selector}}
	}
	return discovery
}

// relabelling keeps the metrics port of ready pods, whose address discovery has put together, and
// names the series after the pod as clusters usually do: its namespace, its name, its node and its
// labels.
func relabelling() []object {
	const meta = "__meta_kubernetes_"
	return []object{
		{"action": "keep", "source_labels": []string{meta + "pod_ready"}, "regex": "true"},
		{"action": "keep", "source_labels": []string{meta + "pod_container_port_name"},
			"regex": workload.MetricsPortName},
		{"action": "labelmap", "regex": meta + "pod_label_(.+)"},
		{"source_labels": []string{meta + "namespace"}, "target_label": "namespace"},
		{"source_labels": []string{meta + "pod_name"}, "target_label": "pod"},
		{"source_labels": []string{meta + "pod_node_name"}, "target_label": "node"},
	}
}

func (w *RemoteWrite) config() object {
	content := object{"url": w.URL, "protobuf_message": "prometheus.WriteRequest"}
	if w.Version == 2 {
		content["protobuf_message"] = "io.prometheus.write.v2.Request"
	}
	if w.BatchSendDeadline > 0 {
		content["queue_config"] = object{"batch_send_deadline": model.Duration(w.BatchSendDeadline).String()}
	}
	if w.BasicAuth != nil {
		content["basic_auth"] = object{"username": w.BasicAuth.Username, "password": w.BasicAuth.Password}
	}
	if w.CAFile != "" {
		content["tls_config"] = object{"ca_file": w.CAFile}
	}
	return content
}

// webFile is how a Prometheus serves its own API.
type webFile struct {
	auth      *BasicAuth
	cert, key string // files; "" for plain HTTP
}

func (w webFile) content() (object, error) {
	content := object{}
	if w.cert != "" {
		content["tls_server_config"] = object{"cert_file": w.cert, "key_file": w.key}
	}
	if w.auth != nil {
		hash, err := bcrypt.GenerateFromPassword([]byte(w.auth.Password), bcrypt.MinCost)
		if err != nil {
			return nil, err
		}
		content["basic_auth_users"] = object{w.auth.Username: string(hash)}
	}
	return content, nil
}
