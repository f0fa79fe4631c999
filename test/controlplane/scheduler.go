package controlplane

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// writeSchedulerConfig completes a KubeSchedulerConfiguration, or makes a plain one, with what this cluster decides: how
// the API server is reached, and that there is no other scheduler to elect a leader among.
func writeSchedulerConfig(path, kubeconfig string, config []byte) error {
	document := map[string]any{
		"apiVersion": "kubescheduler.config.k8s.io/v1",
		"kind":       "KubeSchedulerConfiguration",
	}
	if err := yaml.Unmarshal(config, &document); err != nil {
		return fmt.Errorf("Options.SchedulerConfig: want one KubeSchedulerConfiguration document: %w", err)
	}
	connection, _ := document["clientConnection"].(map[string]any)
	if connection == nil {
		connection = map[string]any{}
	}
	connection["kubeconfig"] = kubeconfig
	document["clientConnection"] = connection
	document["leaderElection"] = map[string]any{"leaderElect": false}
	data, err := yaml.Marshal(document)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}
