//go:build long

package karpenter_test

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/test/bench/karpenter"
	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/stack"
)

// timeScale divides every time that a cluster has of itself, but none of Karpenter's: it resolves a
// CapacityBuffer again every 30 s, as if that were a minute and a half.
const timeScale = 3

// What times of a cluster are here.
const (
	nodeStart        = 90 * time.Second / timeScale
	podStart         = 12 * time.Second / timeScale
	consolidateAfter = 60 * time.Second / timeScale
)

// suite is what all tests share: a control plane with a workload, and Karpenter.
type suite struct {
	context.Context
	stack     *stack.Stack
	binaries  karpenter.Binaries
	karpenter *karpenter.Karpenter
}

var shared suite

func TestMain(m *testing.M) {
	flag.Parse()
	controlplane.Main(func(ctx context.Context) (code int, err error) {
		shared.Context = ctx
		defer func() { err = errors.Join(err, shared.stop()) }()
		if err := shared.start(); err != nil {
			return 1, err
		}
		return m.Run(), nil
	})
}

//go:embed jobs.yaml
var jobsYAML []byte

func (s *suite) start() (err error) {
	if s.binaries, err = karpenter.Build(s, os.Stderr); err != nil {
		return err
	}
	s.stack, err = stack.Start(s, stack.Options{
		Progress: os.Stderr, ReadyDelay: podStart, Seed: 1, TimeScale: timeScale, Stages: jobsYAML,
		// Nodes of a simulated cloud whose instance has been terminated stay without a kubelet.
		ExtraArgs: map[controlplane.Component][]string{
			controlplane.Kwok: {"--disregard-status-with-annotation-selector=kwok.x-k8s.io/status=custom"},
		},
	})
	if err != nil {
		return err
	}
	s.karpenter, err = karpenter.Start(s, s.stack.Cluster, s.binaries)
	return err
}

func (s *suite) stop() error {
	var errs []error
	if s.karpenter != nil {
		errs = append(errs, s.karpenter.Stop())
	}
	if s.stack != nil {
		errs = append(errs, s.stack.Close())
	}
	return errors.Join(errs...)
}

// eventually waits until something holds, and shows the end of Karpenter's log if it never does.
func eventually(t testing.TB, span time.Duration, what string, holds func(*assert.CollectT)) {
	t.Helper()
	if !assert.EventuallyWithT(t, holds, span, 250*time.Millisecond, what) {
		t.Logf("the end of Karpenter's log:\n%s", shared.karpenter.Log())
		t.FailNow()
	}
}

// newPool applies a pool of the test's own.
func newPool(t testing.TB, name string) {
	t.Helper()
	require.NoError(t, shared.karpenter.ApplyPool(t.Context(),
		karpenter.Pool{Name: name, NodeStart: nodeStart, ConsolidateAfter: consolidateAfter}))
}
