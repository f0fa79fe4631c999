package extenderbench

import (
	"fmt"

	"github.com/foresail/foresail/adapter/scheduler/extender"
)

// schedulerConfig is the KubeSchedulerConfiguration of the manifests with an extender at an
// address, or without any at "". The scheduler may ask the API server as often as it likes.
func schedulerConfig(address string) string {
	config := fmt.Sprintf("percentageOfNodesToScore: %d", *share) + `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {qps: 100000, burst: 100000}
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]}}
`
	if address == "" {
		return config
	}
	return config + fmt.Sprintf(`extenders:
- urlPrefix: https://%s%s
  filterVerb: filter
  prioritizeVerb: prioritize
  weight: 5
  enableHTTPS: true
  tlsConfig: {insecure: true}
  nodeCacheCapable: true
  ignorable: true
  httpTimeout: 200ms
`, address, extender.Prefix)
}
