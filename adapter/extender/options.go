package extender

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/foresail/foresail/adapter/snapshot"
)

// Options of an Extender.
type Options struct {
	Client    kubernetes.Interface // nodes and pods are listed and watched with it
	Forecasts Forecasts
	Pools     Pools     // nil: there are none
	Workloads Workloads // nil: none is forecast

	// RemovalMark is the key of the taint, and of the annotation, of nodes that are being removed.
	RemovalMark string

	Rules Rules

	Now      func() time.Time // nil: time.Now
	Registry prometheus.Registerer
	Log      *slog.Logger // nil discards it
}

// Rules say what is refused and what is preferred. DefaultRules has the defaults.
type Rules struct {
	MemoryLimit float64       // share of allocatable memory that a node may be predicted to use; 0: no limit
	CPULimit    float64       // the same of CPU
	Target      float64       // T: the share of a node that is packed up to
	WarmUp      time.Duration // from when a node is Ready until it is scored in full; 0: at once
	StaleAfter  time.Duration // the age at which a prediction is not used any more
	Patience    time.Duration // for how long a pod that no node has room for waits for a pool to grow
	Tentative   time.Duration // for how long a pod counts on the node that was scored best, at most, until it is bound
	NoLedger    bool          // pods that were bound since the last reading do not count; to compare with
}

// DefaultRules returns the defaults.
func DefaultRules() Rules {
	return Rules{
		MemoryLimit: 0.95, Target: 0.65, WarmUp: 180 * time.Second, StaleAfter: 180 * time.Second, Patience: 3 * time.Minute,
		Tentative: 30 * time.Second,
	}
}

// Validate tells all that is wrong, each as an *OptionError, joined.
func (r Rules) Validate() error {
	var errs []error
	share := func(field string, value float64, ok bool, want string) {
		if !ok {
			errs = append(errs, &OptionError{Field: field, Value: fmt.Sprint(value), Want: want})
		}
	}
	share("MemoryLimit", r.MemoryLimit, r.MemoryLimit >= 0 && r.MemoryLimit <= 1, "a share from 0, which is no limit, to 1")
	share("CPULimit", r.CPULimit, r.CPULimit >= 0 && r.CPULimit <= 1, "a share from 0, which is no limit, to 1")
	share("Target", r.Target, r.Target > 0 && r.Target < 1, "a share above 0 and below 1")
	period := func(field string, value, least time.Duration) {
		if value < least {
			errs = append(errs, &OptionError{Field: field, Value: value.String(), Want: least.String() + " or more"})
		}
	}
	period("WarmUp", r.WarmUp, 0)
	period("StaleAfter", r.StaleAfter, time.Second)
	period("Patience", r.Patience, 0)
	period("Tentative", r.Tentative, 0)
	return errors.Join(errs...)
}

// complete returns options that have all that may be left out, or what is wrong, each as an *OptionError.
func (o Options) complete() (Options, error) {
	errs := []error{o.Rules.Validate()}
	require := func(field string, ok bool, want string) {
		if !ok {
			errs = append(errs, &OptionError{Field: field, Want: want})
		}
	}
	require("Client", o.Client != nil, "one that may list and watch nodes and pods")
	require("Forecasts", o.Forecasts != nil, "what tells the use of nodes")
	require("RemovalMark", o.RemovalMark != "", "the key of the taint of nodes that are being removed")
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o, errors.Join(errs...)
}

// Forecasts tells what nodes are predicted to use.
type Forecasts interface {
	// NodeLoads returns the newest snapshot, never nil. It does not block.
	NodeLoads() *snapshot.NodeLoads
}

// Workloads tells what one pod of a workload is predicted to use.
type Workloads interface {
	// PodUse returns cores and bytes of one pod, each 0 if it is not forecast. It does not block.
	PodUse(namespace string, pod labels.Set) (cores, bytes float64)
}

// Pools tells what pools of workers are about to do.
type Pools interface {
	// Standing returns what was seen last. It does not block.
	Standing() *Standing
}

// Standing is what pools of workers are about to do, as of one moment. It is immutable.
type Standing struct {
	Removing   map[string]string // the pool, by the name of a Node that it has committed to remove
	Candidates map[string]string // the pool, by the name of a Node that would be removed next
	Growing    []Growth          // the pools that can grow
}

// Growth is what a new node of a pool that can grow comes up with.
type Growth struct {
	Pool   string
	Labels map[string]string
	Taints []corev1.Taint
}
