package karpenter

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"text/template"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/foresail/foresail/test/env/controlplane"
	"github.com/foresail/foresail/test/env/ports"
)

// The kinds that Karpenter acts on and makes.
var (
	NodeClaims  = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}
	nodePools   = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
	nodeClasses = schema.GroupVersionResource{Group: "karpenter.kwok.sh", Version: "v1alpha1",
		Resource: "kwoknodeclasses"}
	CapacityBuffers = schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1beta1",
		Resource: "capacitybuffers"}
)

// PoolLabel is the label of nodes and NodeClaims with the name of their NodePool.
const PoolLabel = "karpenter.sh/nodepool"

// instanceType is the one type of instance. Karpenter's kwok provider subtracts 100m of CPU from
// what a node can allocate.
const instanceType = "worker"

// Karpenter is a running Karpenter whose instances are Nodes that it creates itself, and kwok makes Ready.
type Karpenter struct {
	cluster  *controlplane.Cluster
	binaries Binaries
	process  *controlplane.Process
}

// Start installs Karpenter's CRDs, runs it as the cluster's administrator (what it may do is not
// what is tested) with the feature gate of CapacityBuffers and further flags, and waits until it is
// ready. Stop ends it.
//
// Its controllers see all nodes of the cluster, but change those alone that they have made. Pods
// are kept apart from other nodes by a node selector, [PoolLabel].
func Start(ctx context.Context, cluster *controlplane.Cluster, binaries Binaries, flags ...string) (*Karpenter, error) {
	k := &Karpenter{cluster: cluster, binaries: binaries}
	if err := k.start(ctx, flags); err != nil {
		return nil, errors.Join(err, k.Stop())
	}
	return k, nil
}

// Stop ends Karpenter.
func (k *Karpenter) Stop() error {
	if k.process == nil {
		return nil
	}
	return k.process.Stop(10 * time.Second)
}

// Log returns the end of Karpenter's log.
func (k *Karpenter) Log() string { return k.process.LogTail() }

// PID returns the id of Karpenter's process.
func (k *Karpenter) PID() int { return k.process.PID() }

func (k *Karpenter) start(ctx context.Context, flags []string) error {
	if err := k.cluster.ApplyFiles(ctx, filepath.Join(k.binaries.path(crds), "*.yaml")); err != nil {
		return err
	}
	types, err := k.writeInstanceTypes()
	if err != nil {
		return err
	}
	metrics, err := ports.Take()
	if err != nil {
		return err
	}
	health, err := ports.Take()
	if err != nil {
		return err
	}
	dir := k.cluster.Dir()
	k.process, err = controlplane.StartProcess("karpenter", k.binaries.path(binary),
		filepath.Join(dir, "karpenter.log"), dir, append([]string{
			"--feature-gates=CapacityBuffer=true",
			"--disable-leader-election",
			"--instance-types-file-path=" + types,
			// Both are served at every address: there is no flag for one.
			"--metrics-port=" + strconv.Itoa(metrics), "--health-probe-port=" + strconv.Itoa(health),
		}, flags...), "KUBECONFIG="+k.cluster.Kubeconfig())
	if err != nil {
		return err
	}
	return k.waitReady(ctx, health)
}

// writeInstanceTypes describes a single type with room for two CPUs of pods, at one price in one zone.
func (k *Karpenter) writeInstanceTypes() (path string, err error) {
	type requirement struct {
		Key      string   `json:"key"`
		Operator string   `json:"operator"`
		Values   []string `json:"values"`
	}
	types := []map[string]any{{
		"name": instanceType, "architecture": "amd64", "operatingSystems": []string{"linux"},
		"resources": map[string]string{"cpu": "2100m", "memory": "8Gi", "ephemeral-storage": "20Gi", "pods": "110"},
		"offerings": []map[string]any{{
			"Price": 0.1, "Available": true, "Requirements": []requirement{
				{"karpenter.sh/capacity-type", "In", []string{"on-demand"}},
				{"topology.kubernetes.io/zone", "In", []string{"a"}},
			},
		}},
	}}
	data, err := json.Marshal(types)
	if err != nil {
		return "", err
	}
	path = filepath.Join(k.cluster.Dir(), "instance-types.json")
	return path, os.WriteFile(path, data, 0o600)
}

// waitReady waits until Karpenter's caches are filled.
func (k *Karpenter) waitReady(ctx context.Context, port int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute,
		errors.New("Karpenter was not ready within two minutes"))
	defer cancel()
	for {
		err := checkReady(ctx, "http://"+ports.Loopback(port)+"/readyz")
		if err == nil {
			return nil
		}
		select {
		case <-k.process.Ended():
			return k.process.Failure()
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w; the end of its log:\n%s", context.Cause(ctx), err, k.Log())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func checkReady(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return nil
}

// Pool is a NodePool with a node class of its own.
type Pool struct {
	Name string
	// NodeStart is how long an instance takes from its launch until its Node is there, which kwok
	// then makes Ready at once. Karpenter takes whole seconds.
	NodeStart time.Duration
	// ConsolidateAfter is how long nothing may have happened on a node before Karpenter removes it,
	// of all nodes as many as may go. 0 stands for Karpenter's defaults: at once, and no more than
	// a tenth of the nodes at a time.
	ConsolidateAfter time.Duration
	MaxNodes         int // 0 = 50
}

//go:embed pool.yaml
var poolYAML string

var poolTemplate = template.Must(template.New("pool.yaml").Parse(poolYAML))

// ApplyPool applies a pool.
func (k *Karpenter) ApplyPool(ctx context.Context, pool Pool) error {
	var manifest bytes.Buffer
	err := poolTemplate.Execute(&manifest, map[string]any{
		"Name": pool.Name, "InstanceType": instanceType, "NodeStart": int(pool.NodeStart.Seconds()),
		"ConsolidateAfter": pool.ConsolidateAfter,
		"CPU":              2 * cmp.Or(pool.MaxNodes, 50),
	})
	if err != nil {
		return err
	}
	_, err = k.cluster.Apply(ctx, manifest.Bytes())
	return err
}

// DeletePool deletes a pool, which has Karpenter remove its nodes, and its node class.
func (k *Karpenter) DeletePool(ctx context.Context, name string) error {
	for _, kind := range []schema.GroupVersionResource{nodePools, nodeClasses} {
		if err := k.cluster.Dynamic().Resource(kind).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}
