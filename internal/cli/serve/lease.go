package serve

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/foresail/foresail/internal/cli"
)

const (
	leaseName     = "foresail-status"
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second

	// podNamespaceFile has the namespace of the pod that reads it.
	podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// leaseOptions are the flags of the election of the replica that leads.
type leaseOptions struct {
	elect     bool
	namespace *string // that Foresail runs in
}

func (o *leaseOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.elect, "leader-elect", true,
		"Elect the replica that writes status, Events, checkpoints, HPAs and CapacityBuffers, and reads histories. With false this replica does.")
}

func (o *leaseOptions) validate() error {
	if o.elect && *o.namespace == "" {
		return cli.BadFlag(namespaceFlag, `""`,
			"the namespace that this runs in, or outside of a cluster any that exists, unless --leader-elect=false")
	}
	return nil
}

// run runs lead whenever this process holds the lease, until the context ends. Losing the lease ends only lead.
func (o *leaseOptions) run(ctx context.Context, config *rest.Config, lead func(context.Context) error) error {
	if !o.elect {
		return lead(ctx)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client for leases: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("name this replica: %w", err)
	}
	election := leaderelection.LeaderElectionConfig{
		Name: leaseName,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: *o.namespace, Name: leaseName},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
		},
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			// it returns once ctx ends, and without an error
			OnStartedLeading: func(ctx context.Context) { _ = lead(ctx) },
			OnStoppedLeading: func() {},
		},
	}
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(election)
		if err != nil {
			return fmt.Errorf("elect a leader: %w", err)
		}
		elector.Run(ctx)
	}
	return nil
}

func podNamespace() string {
	content, err := os.ReadFile(podNamespaceFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}
