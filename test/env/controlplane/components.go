package controlplane

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	utilversion "k8s.io/apimachinery/pkg/util/version"
)

// Component names one program of the control plane; it is also the name of its binary and of its log file.
type Component string

// The programs of a cluster, in the order in which they start.
const (
	Etcd              Component = "etcd"
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	Scheduler         Component = "kube-scheduler"
	Kwok              Component = "kwok"
)

// Components lists the programs of a cluster in the order in which they start. They are stopped in reverse.
func Components() []Component {
	return []Component{Etcd, APIServer, ControllerManager, Scheduler, Kwok}
}

// programs is how the components are built, and kwok's own stages with them.
func programs() Programs {
	return Programs{
		Title:  "control plane",
		Module: componentsDir,
		Cache:  "controlplane",
		List: []Program{
			{string(Etcd), "go.etcd.io/etcd/server/v3"},
			{string(APIServer), "k8s.io/kubernetes/cmd/kube-apiserver"},
			{string(ControllerManager), "k8s.io/kubernetes/cmd/kube-controller-manager"},
			{string(Scheduler), "k8s.io/kubernetes/cmd/kube-scheduler"},
			{string(Kwok), "sigs.k8s.io/kwok/cmd/kwok"},
		},
		Release: "k8s.io/kubernetes",
		Stamp:   stampKubernetes,
		Assets:  Assets{Module: "sigs.k8s.io/kwok", Files: kwokStages, Dir: "stages"},
	}
}

// oldestPrograms is how the oldest Kubernetes that Foresail supports is built. Its in-tree cloud
// providers are left out.
func oldestPrograms() Programs {
	return Programs{
		Title:  "the oldest Kubernetes",
		Module: "test/env/controlplane/oldest",
		Cache:  "controlplane-oldest",
		List: []Program{
			{string(APIServer), "k8s.io/kubernetes/cmd/kube-apiserver"},
			{string(ControllerManager), "k8s.io/kubernetes/cmd/kube-controller-manager"},
			{string(Scheduler), "k8s.io/kubernetes/cmd/kube-scheduler"},
		},
		Tags:    "providerless",
		Release: "k8s.io/kubernetes",
		Stamp:   stampKubernetes,
	}
}

// stampKubernetes sets the version that the binaries report; without it that is v0.0.0-master.
func stampKubernetes(version string) (string, error) {
	v, err := utilversion.ParseSemantic(version)
	if err != nil {
		return "", err
	}
	const pkg = "k8s.io/component-base/version."
	return fmt.Sprintf("-X %sgitVersion=%s -X %sgitMajor=%d -X %sgitMinor=%d",
		pkg, version, pkg, v.Major(), pkg, v.Minor()), nil
}

// Binaries is a folder that holds the five programs and the kwok stages of one build.
type Binaries struct {
	// Dir is named after what the build depends on, so its content never changes.
	Dir string
	// Kubernetes has the programs of another release of Kubernetes; "" for those in Dir.
	Kubernetes string
}

// Path returns where the binary of a component lies.
func (b Binaries) Path(c Component) string {
	if b.Kubernetes != "" && c != Etcd && c != Kwok {
		return filepath.Join(b.Kubernetes, string(c))
	}
	return filepath.Join(b.Dir, string(c))
}

// Build compiles what is missing of the control plane into <repository>/.cache/controlplane, as
// [Programs.Build] does, and returns where it lies.
func Build(ctx context.Context, progress io.Writer) (Binaries, error) {
	root, err := Root()
	if err != nil {
		return Binaries{}, fmt.Errorf("build control plane: %w", err)
	}
	dir, err := programs().Build(ctx, root, progress)
	return Binaries{Dir: dir}, err
}

// BuildOldest is [Build] with the oldest Kubernetes that Foresail supports, which docs/operating.md names.
func BuildOldest(ctx context.Context, progress io.Writer) (Binaries, error) {
	binaries, err := Build(ctx, progress)
	if err != nil {
		return binaries, err
	}
	root, err := Root()
	if err != nil {
		return binaries, fmt.Errorf("build the oldest Kubernetes: %w", err)
	}
	binaries.Kubernetes, err = oldestPrograms().Build(ctx, root, progress)
	return binaries, err
}

// Download fetches the modules that [Build] needs, if it has to build.
func Download(ctx context.Context) {
	if root, err := Root(); err == nil {
		programs().Download(ctx, root)
	}
}

// kwokStages are the life-cycle stages taken from kwok's own module; pods start and become ready by
// those in stages/.
var kwokStages = []string{
	"kustomize/stage/node/fast/node-initialize.yaml",
	"kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
	"kustomize/stage/pod/fast/pod-complete.yaml",
	"kustomize/stage/pod/fast/pod-delete.yaml",
}
