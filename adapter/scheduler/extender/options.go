package extender

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/foresail/foresail/adapter/forecast/snapshot"
	"github.com/foresail/foresail/internal/objectcache"
)

// Options of an Extender.
type Options struct {
	Client    kubernetes.Interface // reads pods; lists and watches nodes and pods unless there are feeds
	Nodes     Feed                 // nil together with Pods: the extender watches both itself
	Pods      Feed                 // of all namespaces
	Forecasts Forecasts
	Pools     Pools     // nil: there are none
	Workloads Workloads // nil: none is forecast

	// RemovalMark is the key of the taint, and of the annotation, of nodes that are being removed.
	RemovalMark string

	Rules Rules

	Now      func() time.Time // nil: time.Now
	Registry prometheus.Registerer
}

// Rules configure filter and prioritize. DefaultRules has the defaults.
type Rules struct {
	MemoryLimit   float64       // share of allocatable memory that a node may be predicted to use; 0: no limit
	CPULimit      float64       // the same of CPU
	Target        float64       // T: share of a node up to which fuller nodes are preferred
	WarmUp        time.Duration // time after Ready until a node gets its full score; 0: at once
	StaleAfter    time.Duration // the age from which a prediction is not used
	MaxWait       time.Duration // how long a pod that fits no node waits for a pool to grow
	AssumeTimeout time.Duration // how long a scored pod counts on its best node before it is bound
}

// DefaultRules returns the defaults.
func DefaultRules() Rules {
	return Rules{
		MemoryLimit: 0.95, Target: 0.65, WarmUp: 180 * time.Second, StaleAfter: 180 * time.Second,
		MaxWait:       3 * time.Minute,
		AssumeTimeout: 30 * time.Second,
	}
}

// Validate returns all errors joined, each an *OptionError.
func (r Rules) Validate() error {
	var errs []error
	share := func(field string, value float64, ok bool, accept string) {
		if !ok {
			errs = append(errs, &OptionError{Field: field, Value: fmt.Sprint(value), Accept: accept})
		}
	}
	share("MemoryLimit", r.MemoryLimit, r.MemoryLimit >= 0 && r.MemoryLimit <= 1,
		"a share from 0, which is no limit, to 1")
	share("CPULimit", r.CPULimit, r.CPULimit >= 0 && r.CPULimit <= 1, "a share from 0, which is no limit, to 1")
	share("Target", r.Target, r.Target > 0 && r.Target < 1, "a share above 0 and below 1")
	period := func(field string, value, least time.Duration) {
		if value < least {
			errs = append(errs, &OptionError{Field: field, Value: value.String(), Accept: least.String() + " or more"})
		}
	}
	period("WarmUp", r.WarmUp, 0)
	period("StaleAfter", r.StaleAfter, time.Second)
	period("MaxWait", r.MaxWait, 0)
	period("AssumeTimeout", r.AssumeTimeout, 0)
	return errors.Join(errs...)
}

// complete returns the options with defaults, or all errors joined, each an *OptionError.
func (o Options) complete() (Options, error) {
	errs := []error{o.Rules.Validate()}
	require := func(field string, ok bool, accept string) {
		if !ok {
			errs = append(errs, &OptionError{Field: field, Accept: accept})
		}
	}
	require("Client", o.Client != nil, "one that may list and watch nodes and pods, and get pods")
	require("Forecasts", o.Forecasts != nil, "forecasts of nodes")
	require("RemovalMark", o.RemovalMark != "", "the key of the taint of nodes that are being removed")
	if o.Now == nil {
		o.Now = time.Now
	}
	return o, errors.Join(errs...)
}

// Feed has the objects of one kind for several parts of a process.
type Feed interface {
	Subscribe(objectcache.Store) (cancel func())
}

// Forecasts has the predicted use of nodes.
type Forecasts interface {
	// NodeLoads returns the newest snapshot, never nil. It does not block.
	NodeLoads() *snapshot.NodeLoads
}

// Workloads has the predicted use of one pod of a workload.
type Workloads interface {
	// PodUse returns cores and bytes of one pod, each 0 if it is not forecast. It does not block.
	PodUse(namespace string, pod labels.Set) (cores, bytes float64)
}

// Pools has the intent of WorkerPools.
type Pools interface {
	// PoolIntent returns what was seen last. It does not block.
	PoolIntent() *PoolIntent
}

// PoolIntent holds the planned actions of WorkerPools at one moment. It is immutable.
type PoolIntent struct {
	Removing   map[string]string // pools by the names of Nodes that they have committed to remove
	Candidates map[string]string // pools by the names of Nodes that they would remove next
	Growing    []Growth          // nodes that pools could launch
}

// Growth is a node that a pool could launch.
type Growth struct {
	Pool   string
	Labels map[string]string
	Taints []corev1.Taint
}

// OptionError names a field of Options, Rules or ServerOptions, its value, and what is accepted.
type OptionError struct {
	Field, Value string
	Accept       string
	Err          error // may be nil
}

func (e *OptionError) Error() string {
	text := fmt.Sprintf("%s is %q: want %s", e.Field, e.Value, e.Accept)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns what went wrong with the value.
func (e *OptionError) Unwrap() error { return e.Err }
