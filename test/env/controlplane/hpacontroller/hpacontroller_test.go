// Package hpacontroller holds internal/lab/scaler/hpa against the HPA controller of kube-controller-manager.
package hpacontroller

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/foresail/foresail/internal/lab/scaler/hpa"
	"github.com/foresail/foresail/test/env/controlplane"
)

// scenario is what test/env/controlplane/components/hpacontroller plays; the fields mean what they
// mean there.
type scenario struct {
	Min, Max    int
	Behavior    *autoscalingv2.HorizontalPodAutoscalerBehavior
	Period      int64
	Tolerance   float64
	Downscale   int64
	CPUInit     int64
	InitialRead int64
	Replicas    int
	Looks       []look
}

type look struct {
	Set     *int
	Status  int
	Pods    []pod
	Metrics []metric
}

type pod struct {
	Phase       corev1.PodPhase
	Terminating bool
	Started     *int64
	Ready       corev1.ConditionStatus
	Changed     int64
	Request     *int64
	Usage       *usage
}

type usage struct{ Value, T, Window int64 }

type metric struct {
	Kind   string
	Target int64
	Items  []int64
	Fails  bool
}

const (
	utilization = "utilization"
	value       = "value"
	average     = "average"
)

// The controller is the real one, in a module of its own: what it pins is not to be mixed with what
// this module needs.
func TestComesToTheReplicasThatTheControllerSets(t *testing.T) {
	const seed = 1
	scenarios := draw(seed)
	answers := ask(t, scenarios)
	require.Len(t, answers, len(scenarios))
	for i := range scenarios {
		got := play(t, &scenarios[i])
		for j := range got {
			require.Equal(t, answers[i][j], got[j], "seed %d, scenario %d, look %d: %s", seed, i, j+1,
				show(&scenarios[i], j))
		}
	}
	assertVaried(t, scenarios, answers)
}

// show returns a scenario without the looks after the n-th.
func show(s *scenario, n int) string {
	short := *s
	short.Looks = s.Looks[:n+1]
	data, err := json.Marshal(short)
	return fmt.Sprintf("%s %v", data, err)
}

// ask has the controller play the scenarios and returns the replicas after each look.
func ask(t *testing.T, scenarios []scenario) [][]int {
	t.Helper()
	root, err := controlplane.Root()
	require.NoError(t, err)
	dir := t.TempDir()
	in, out := filepath.Join(dir, "scenarios.json"), filepath.Join(dir, "answers.json")
	data, err := json.Marshal(scenarios)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(in, data, 0o600))
	// Built as kube-controller-manager is: what they share is not compiled again.
	command := exec.CommandContext(t.Context(), "go", "test", "-trimpath", "-vet=off", "-count=1", "-timeout=10m",
		"./hpacontroller", "-args", "-scenarios", in, "-answers", out)
	command.Dir = filepath.Join(root, "test", "env", "controlplane", "components")
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	data, err = os.ReadFile(out)
	require.NoError(t, err)
	var answers [][]int
	require.NoError(t, json.Unmarshal(data, &answers))
	return answers
}

// play returns what this module's arithmetic makes of a scenario.
func play(t *testing.T, s *scenario) []int {
	t.Helper()
	a, err := hpa.New(s.Min, s.Max, s.Behavior, hpa.Flags{
		Tolerance: s.Tolerance, DownscaleStabilization: duration(s.Downscale),
		CPUInitializationPeriod: duration(s.CPUInit), InitialReadinessDelay: duration(s.InitialRead),
	})
	require.NoError(t, err)
	replicas := s.Replicas
	out := make([]int, 0, len(s.Looks))
	for i := range s.Looks {
		l := &s.Looks[i]
		if l.Set != nil {
			replicas = *l.Set
		}
		state := hpa.State{Now: int64(i+1) * s.Period, Spec: replicas, Status: l.Status, Pods: l.pods()}
		replicas, _ = a.Sync(state, l.metrics()...)
		out = append(out, replicas)
	}
	return out
}

func duration(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

func (l *look) pods() []hpa.Pod {
	out := make([]hpa.Pod, 0, len(l.Pods))
	for _, p := range l.Pods {
		x := hpa.Pod{
			Phase: p.Phase, Terminating: p.Terminating, Ready: p.Ready, Changed: p.Changed,
			Started: unlessNil(p.Started), Request: unlessNil(p.Request),
		}
		if u := p.Usage; u != nil {
			x.Usage = &hpa.Usage{Value: u.Value, T: u.T, Window: duration(u.Window)}
		}
		out = append(out, x)
	}
	return out
}

func unlessNil(v *int64) int64 {
	if v == nil {
		return hpa.Unset
	}
	return *v
}

func (l *look) metrics() []hpa.Metric {
	out := make([]hpa.Metric, 0, len(l.Metrics))
	for _, m := range l.Metrics {
		var err error
		if m.Fails {
			err = errors.New("the scenario has it fail")
		}
		if m.Kind == utilization {
			out = append(out, hpa.Utilization{Target: int(m.Target), Err: err})
			continue
		}
		total := int64(0)
		for _, v := range m.Items {
			total += v
		}
		out = append(out, hpa.External{Total: total, Target: m.Target, Average: m.Kind == average, Err: err})
	}
	return out
}
