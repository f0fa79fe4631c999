package controlplane

import (
	"context"
	"fmt"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"sigs.k8s.io/yaml"

	"github.com/foresail/foresail/test/env/ports"
)

// FurtherScheduler is a kube-scheduler beside the cluster's own. It schedules the pods that name it
// as their schedulerName.
type FurtherScheduler struct {
	*Process
	Name    string
	cluster *Cluster
	url     string
}

// StartScheduler runs a further kube-scheduler and returns when it is ready. config is a
// KubeSchedulerConfiguration in YAML, nil for the default one; of its profiles the one without a
// schedulerName is called name. args go before the package's own. The scheduler is to be stopped
// before the cluster is; it ends with this process at the latest.
func (c *Cluster) StartScheduler(ctx context.Context, name string, config []byte, args ...string) (*FurtherScheduler,
	error) {
	config, err := nameProfile(config, name)
	if err != nil {
		return nil, err
	}
	kubeconfig, file := c.file("kube-scheduler.kubeconfig"), c.file("scheduler-"+name+".yaml")
	if err := writeSchedulerConfig(file, kubeconfig, config); err != nil {
		return nil, err
	}
	port, err := ports.Take()
	if err != nil {
		return nil, err
	}
	s := &FurtherScheduler{Name: name, cluster: c, url: fmt.Sprintf("https://127.0.0.1:%d", port)}
	s.Process, err = StartProcess("scheduler "+name, c.options.Binaries.Path(Scheduler),
		c.file("scheduler-"+name+".log"), c.dir, append([]string{
			"--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", port),
			"--tls-cert-file=" + c.file("loopback.crt"),
			"--tls-private-key-file=" + c.file("loopback.key"),
			"--config=" + file,
			"--authentication-kubeconfig=" + kubeconfig,
			"--authorization-kubeconfig=" + kubeconfig,
		}, args...))
	if err != nil {
		return nil, err
	}
	if err := s.waitReady(ctx); err != nil {
		_ = s.Stop(stopDeadline) // it is of no use
		return nil, err
	}
	return s, nil
}

// nameProfile gives the profile that has no name one.
func nameProfile(config []byte, name string) ([]byte, error) {
	document := map[string]any{}
	if err := yaml.Unmarshal(config, &document); err != nil {
		return nil, fmt.Errorf("configuration of scheduler %s: want one KubeSchedulerConfiguration document: %w", name,
			err)
	}
	profiles, _ := document["profiles"].([]any)
	if len(profiles) == 0 {
		profiles = []any{map[string]any{}}
	}
	for _, p := range profiles {
		if profile, ok := p.(map[string]any); ok && profile["schedulerName"] == nil {
			profile["schedulerName"] = name
		}
	}
	document["profiles"] = profiles
	return yaml.Marshal(document)
}

func (s *FurtherScheduler) waitReady(ctx context.Context) error {
	client, err := s.cluster.healthClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-s.Ended():
			cancel(s.Failure())
		case <-ctx.Done():
		}
	}()
	return s.cluster.poll(ctx, "scheduler "+s.Name+" to be ready", func(ctx context.Context) error {
		return checkHealth(ctx, client, s.url+s.cluster.schedulerReadiness())
	})
}

// Metrics reads the scheduler's own metrics.
func (s *FurtherScheduler) Metrics(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	client, err := s.cluster.healthClient()
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics of scheduler %s: %s", s.Name, response.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(response.Body)
}
