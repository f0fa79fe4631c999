package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Options say how a cluster differs from the plain one that the zero value describes.
type Options struct {
	// Binaries are what runs; the zero value stands for those of [Build].
	Binaries Binaries
	// Progress receives lines about the build, if there is one, and about waits; nil for none.
	Progress io.Writer

	// APIOnly leaves out everything but etcd and the API server, for tests that write down what
	// others would bring about. Such a cluster has no nodes.
	APIOnly bool
	// Nodes is how many nodes the cluster has, and has Ready, when Start returns. More come with
	// [Cluster.AddNodes].
	Nodes int
	// ReadyDelay is the time from a pod's start to its readiness; a pod's [ReadyDelayAnnotation]
	// goes before it.
	ReadyDelay time.Duration
	// PodCIDR is where pods have their addresses; the zero value stands for one within 127.0.0.0/8
	// that no other cluster on this machine has. It bounds how many pods a cluster can have in its
	// life, as no address comes twice: past the end of the network come the addresses behind it.
	PodCIDR netip.Prefix
	// SchedulerConfig is a KubeSchedulerConfiguration in YAML; nil for the default scheduler.
	SchedulerConfig []byte
	// Stages are further kwok Stage documents in YAML.
	Stages []byte
	// AuditPolicy is an audit Policy in YAML, by which the API server writes [Cluster.AuditLog];
	// nil for no log.
	AuditPolicy []byte
	// ExtraArgs are further flags by component, such as "--horizontal-pod-autoscaler-sync-period=2s" for the
	// [ControllerManager]. They go before the package's own.
	ExtraArgs map[Component][]string

	// Dir is the folder in which the cluster's own folder is made; "" stands for the system's
	// temporary folder.
	Dir string
	// KeepDir leaves the cluster's folder, with its logs, behind.
	KeepDir bool
}

// Cluster is a running control plane. Its methods may be called from any goroutine.
type Cluster struct {
	options Options
	slot    *slot
	podCIDR netip.Prefix
	dir     string
	dirLock *os.File
	// borrowed means that the components belong to another process.
	borrowed bool
	// ca signs servers and clients, frontProxyCA the API server towards aggregated ones.
	ca, frontProxyCA *Authority

	processes []*Process
	config    *rest.Config
	client    kubernetes.Interface
	dynamic   dynamic.Interface
	applier   *applier
	// lastNode numbers the nodes.
	lastNode atomic.Int64

	// done is closed at the first unexpected end of a component or when the cluster has stopped.
	done     chan struct{}
	doneOnce sync.Once
	mu       sync.Mutex
	err      error
	stopOnce sync.Once
	stopErr  error
}

const (
	// startTimeout bounds a start, whose parts are waited for until it is over. It is meant for a
	// crowded machine.
	startTimeout = 2 * time.Minute
	// stopDeadline is how long each component has to end by itself.
	stopDeadline = 3 * time.Second
)

// Start runs a cluster and returns when it is ready to be worked with: every component is healthy
// and the nodes asked for are Ready. It builds the components first if need be. The cluster ends
// with [Cluster.Stop] or with ctx.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	if err := options.validate(); err != nil {
		return nil, err
	}
	if options.Binaries == (Binaries{}) {
		binaries, err := Build(ctx, options.Progress)
		if err != nil {
			return nil, err
		}
		options.Binaries = binaries
	}
	c := &Cluster{options: options, done: make(chan struct{})}
	startContext, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	if err := c.start(startContext); err != nil {
		return nil, errors.Join(fmt.Errorf("start control plane: %w", err), c.Stop())
	}
	context.AfterFunc(ctx, func() { _ = c.Stop() })
	return c, nil
}

func (o Options) validate() error {
	if o.ReadyDelay < 0 {
		return fmt.Errorf("Options.ReadyDelay: %s: want no less than 0", o.ReadyDelay)
	}
	if o.Nodes < 0 {
		return fmt.Errorf("Options.Nodes: %d: want no less than 0", o.Nodes)
	}
	if o.APIOnly && o.Nodes > 0 {
		return fmt.Errorf("Options.Nodes: %d: want 0 with APIOnly: nothing would make nodes ready", o.Nodes)
	}
	if o.PodCIDR != (netip.Prefix{}) && (!o.PodCIDR.Addr().Is4() || o.PodCIDR != o.PodCIDR.Masked()) {
		return fmt.Errorf("Options.PodCIDR: %s: want an IPv4 network such as 127.9.0.0/16", o.PodCIDR)
	}
	for component := range o.ExtraArgs {
		if !slices.Contains(Components(), component) {
			return fmt.Errorf("Options.ExtraArgs: %q: want one of %q", component, Components())
		}
	}
	return nil
}

// start takes what a cluster needs, one thing after the other; Stop gives back what was taken.
func (c *Cluster) start(ctx context.Context) error {
	var err error
	if c.slot, err = takeSlot(); err != nil {
		return err
	}
	c.podCIDR = c.slot.podCIDR()
	if c.options.PodCIDR.IsValid() {
		c.podCIDR = c.options.PodCIDR
	}
	if c.dir, c.dirLock, err = newClusterDir(c.options.Dir, c.options.KeepDir); err != nil {
		return err
	}
	if err := c.writeFiles(); err != nil {
		return err
	}
	if err := c.makeClients(); err != nil {
		return err
	}
	for _, component := range []Component{Etcd, APIServer} {
		if err := c.launch(component); err != nil {
			return err
		}
	}
	if err := c.waitHealthy(ctx, APIServer); err != nil || c.options.APIOnly {
		return err
	}
	for _, component := range []Component{ControllerManager, Scheduler, Kwok} {
		if err := c.launch(component); err != nil {
			return err
		}
	}
	if err := c.waitReady(ctx); err != nil {
		return err
	}
	_, err = c.AddNodes(ctx, c.options.Nodes)
	return err
}

// launch starts a component and watches over it.
func (c *Cluster) launch(component Component) error {
	p, err := StartProcess(string(component), c.options.Binaries.Path(component), c.LogFile(component), c.dir,
		c.arguments(component))
	if err != nil {
		return err
	}
	c.processes = append(c.processes, p)
	go func() {
		<-p.ended
		if !p.stopping.Load() {
			c.end(p.Failure())
		}
	}()
	return nil
}

// end records why the cluster is no longer whole; only the first reason counts.
func (c *Cluster) end(err error) {
	c.doneOnce.Do(func() {
		c.mu.Lock()
		c.err = err
		c.mu.Unlock()
		close(c.done)
	})
}

// Done is closed when a component has ended unexpectedly, or when the cluster has stopped; Err
// distinguishes them.
func (c *Cluster) Done() <-chan struct{} { return c.done }

// Err returns nil while the cluster is whole and after a Stop that was asked for. After the
// unexpected end of a component it names the component and carries the last lines of its log.
func (c *Cluster) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Stop ends the components in the reverse order of their start, kills those that do not end in
// time, and removes the cluster's folder. Every call returns when the work of the first is done,
// with the same result.
func (c *Cluster) Stop() error {
	if c.borrowed {
		return errors.New("the API server is borrowed from another process, which stops it")
	}
	c.stopOnce.Do(func() {
		c.stopErr = c.stop()
		c.end(nil)
	})
	return c.stopErr
}

func (c *Cluster) stop() error {
	var errs []error
	// Before the first is stopped, so that none that goes down with another counts as a failure.
	for _, p := range c.processes {
		p.stopping.Store(true)
	}
	for _, p := range slices.Backward(c.processes) {
		errs = append(errs, p.Stop(stopDeadline))
	}
	if c.dir != "" && !c.options.KeepDir {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	if c.dirLock != nil {
		errs = append(errs, c.dirLock.Close())
	}
	if c.slot != nil {
		c.slot.release()
	}
	return errors.Join(errs...)
}

// Dir returns the cluster's folder: certificates, kubeconfigs, component logs.
func (c *Cluster) Dir() string { return c.dir }

// LogFile returns the path of a component's log.
func (c *Cluster) LogFile(component Component) string { return c.file(string(component) + ".log") }

// AuditLog returns the path of the log that [Options.AuditPolicy] asks for: events of
// audit.k8s.io/v1 in JSON, one a line. It has each event before the client has its answer.
func (c *Cluster) AuditLog() string { return c.file("audit.log") }

func (c *Cluster) file(name string) string { return filepath.Join(c.dir, name) }

// PodCIDR returns the network that pods have their addresses in.
func (c *Cluster) PodCIDR() netip.Prefix { return c.podCIDR }

// PIDs returns the process ids of the components, for tests that measure or kill them.
func (c *Cluster) PIDs() map[Component]int {
	pids := make(map[Component]int, len(c.processes))
	for _, p := range c.processes {
		pids[Component(p.name)] = p.PID()
	}
	return pids
}
