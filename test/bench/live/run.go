package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/foresail/foresail/test/env/loadgen"
	"github.com/foresail/foresail/test/env/stack"
)

// settings are those of all runs.
type settings struct {
	scale    float64 // rates are divided by it, and service times multiplied
	lead     time.Duration
	startup  time.Duration // of a pod
	seed     uint64
	out      string // folder
	progress io.Writer
}

// fullServiceTime is what a request costs at the full rate: the paper's pods can do 125 requests per second.
const fullServiceTime = 8 * time.Millisecond

func (s settings) serviceTime() time.Duration {
	return time.Duration(s.scale * float64(fullServiceTime))
}

// users is how many requests k6 has under way at most: as many seconds of work as at the full rate.
func (s settings) users() int { return int(maxUsers / s.scale) }

// patience bounds each step before the load, on a crowded machine.
const patience = 3 * time.Minute

func withPatience(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, patience, fmt.Errorf("not ready within %s", patience))
}

// result is what one play came to.
type result struct {
	profile, scaler string
	outcome
	podSeconds float64
	late       time.Duration // of the machine, see lateness
	moments    []moment
}

// play runs one scaler under one profile, on a control plane of its own. Whatever it started has
// ended when it returns.
func play(ctx context.Context, b binaries, c settings, p profile, sc scaler) (r result, err error) {
	fmt.Fprintf(c.progress, "%s: %s\n", p.name, sc.name)
	base, err := stack.Start(ctx, stack.Options{Progress: c.progress, ReadyDelay: c.startup, Seed: c.seed})
	if err != nil {
		return result{}, err
	}
	s := &stage{settings: c, binaries: b, scaler: sc, stack: base}
	playing, cancel := context.WithCancelCause(ctx)
	defer func() {
		closed := s.close()
		cancel(nil)
		err = errors.Join(err, closed, base.Close())
	}()
	go func() {
		<-base.Cluster.Done()
		cancel(base.Cluster.Err())
	}()
	r, err = s.play(playing, p)
	if err != nil && ctx.Err() == nil {
		err = errors.Join(fmt.Errorf("%s: %s: %w", p.name, sc.name, err), s.keepLogs(p))
	}
	return r, err
}

func (s *stage) play(ctx context.Context, p profile) (result, error) {
	begins, err := s.deploy(ctx, p)
	if err != nil {
		return result{}, err
	}
	front, address, err := s.startProxy(ctx)
	if err != nil {
		return result{}, err
	}
	plan := k6PlanOf(p, s.settings.lead, s.settings.users())
	plan.Target = "http://" + address
	if !begins.IsZero() {
		if err := waitUntil(ctx, begins); err != nil {
			return result{}, err
		}
	}
	fmt.Fprintf(s.settings.progress, "%s: %s: sending requests for %s\n", p.name, s.scaler.name,
		s.settings.lead+p.load.Duration())

	r := result{profile: p.name, scaler: s.scaler.name}
	parts, ctx := errgroup.WithContext(ctx)
	watching, stop := context.WithCancel(ctx)
	parts.Go(func() (err error) {
		defer stop()
		r.outcome, err = runK6(ctx, s.binaries.k6, s.stack.Cluster.Dir(), plan)
		return err
	})
	parts.Go(func() (err error) {
		r.moments, err = s.watch(watching, front)
		return err
	})
	parts.Go(func() error {
		r.late = lateness(watching)
		return nil
	})
	if err := parts.Wait(); err != nil {
		return result{}, err
	}
	r.moments = clip(r.moments, p.load.Duration())
	r.podSeconds = podSeconds(r.moments)
	return r, nil
}

// startProxy serves a proxy in front of the application until ctx ends, and returns it with its address.
func (s *stage) startProxy(ctx context.Context) (*proxy, string, error) {
	pods, err := loadgen.NewReadyPods(s.stack.Cluster.Client(), namespace, "app="+appName, 0)
	if err != nil {
		return nil, "", err
	}
	if err := pods.Start(ctx); err != nil {
		return nil, "", err
	}
	known := newDiscovery(pods)
	go known.run(ctx)
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	front := newProxy(known)
	go func() { _ = front.serve(ctx, listener) }() // a failure shows in k6: no request is answered
	return front, listener.Addr().String(), nil
}

// waitForPods waits until the application has so many ready pods.
func (s *stage) waitForPods(ctx context.Context, n int) error {
	return s.wait(ctx, fmt.Sprintf("%d ready pods", n), func(ctx context.Context) error {
		d, err := s.stack.Cluster.Client().AppsV1().Deployments(namespace).Get(ctx, appName, metav1.GetOptions{})
		if err == nil && int(d.Status.ReadyReplicas) < n {
			err = fmt.Errorf("%d are", d.Status.ReadyReplicas)
		}
		return err
	})
}

// waitForHPA waits until the HPA reads its metric.
func (s *stage) waitForHPA(ctx context.Context) error {
	return s.wait(ctx, "the HPA to read its metric", func(ctx context.Context) error {
		hpa, err := s.stack.Cluster.Client().AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(ctx, appName,
			metav1.GetOptions{})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(hpa.Status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
			return c.Type == autoscalingv2.ScalingActive
		})
		if i < 0 {
			return errors.New("it has not looked yet")
		}
		if c := hpa.Status.Conditions[i]; c.Status != corev1.ConditionTrue {
			return fmt.Errorf("%s: %s", c.Reason, c.Message)
		}
		return nil
	})
}

// wait tries until there is no error.
func (s *stage) wait(ctx context.Context, what string, try func(context.Context) error) error {
	ctx, cancel := withPatience(ctx)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w: %w", what, context.Cause(ctx), err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// keepLogs copies the logs of a play that failed to where its results would have been.
func (s *stage) keepLogs(p profile) error {
	dir := filepath.Join(s.settings.out, "failed-"+p.name+"-"+s.scaler.name)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	logs, err := filepath.Glob(filepath.Join(s.stack.Cluster.Dir(), "*.log"))
	if err != nil {
		return err
	}
	nested, err := filepath.Glob(filepath.Join(s.stack.Cluster.Dir(), "*", "*.log"))
	if err != nil {
		return err
	}
	for _, log := range append(logs, nested...) {
		content, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(log)), content, 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(s.settings.progress, "the logs are in %s\n", dir)
	return nil
}
