package extenderbench

import "fmt"

// The paths that foresail answers schedulers at.
const extenderPath = "/scheduler"

// schedulerConfig is a KubeSchedulerConfiguration that packs nodes, with an extender at an address, or with none at "". The
// scheduler may ask the API server as often as it likes.
func schedulerConfig(address string) string {
	config := `apiVersion: kubescheduler.config.k8s.io/v1
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
  weight: 10
  enableHTTPS: true
  tlsConfig: {insecure: true}
  nodeCacheCapable: true
  ignorable: true
  httpTimeout: 200ms
`, address, extenderPath)
}
