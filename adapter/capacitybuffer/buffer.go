// Package capacitybuffer keeps a CapacityBuffer for each PredictedMetric with spec.capacityBuffer: as many spare pods as will be needed
// by the time at which a node has started that is ordered now. A node autoscaler, such as cluster-autoscaler or Karpenter, has nodes
// ready for them. It never changes a CapacityBuffer that another has created.
package capacitybuffer

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/foresail/foresail/adapter/owned"
	"github.com/foresail/foresail/api/v1alpha1"
)

const (
	group    = "autoscaling.x-k8s.io"
	resource = "capacitybuffers"
	kind     = "CapacityBuffer"

	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "foresail"
)

// versions are those of the kind, the preferred one first. All have the fields that are used here. cluster-autoscaler serves v1beta1,
// and v1alpha1 as deprecated; Karpenter 1.14 serves v1beta1.
var versions = []string{"v1", "v1beta1", "v1alpha1"}

// Conditions in the status of a CapacityBuffer.
const (
	conditionResolved     = "ReadyForProvisioning" // what one spare pod needs is known
	conditionProvisioning = "Provisioning"         // the autoscaler acts on it
)

func kindOf(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
}

// Discovery says what the API server serves.
type Discovery interface {
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
}

// served returns the preferred version of CapacityBuffers that is served, "" if none is. The group has other kinds, which may be served
// in other versions.
func served(ctx context.Context, d Discovery) (string, error) {
	for _, version := range versions {
		list, err := d.ServerResourcesForGroupVersionWithContext(ctx, group+"/"+version)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("ask which resources %s/%s has: %w", group, version, err)
		}
		for i := range list.APIResources {
			if list.APIResources[i].Name == resource {
				return version, nil
			}
		}
	}
	return "", nil
}

// specOf returns the spec that a buffer is to have, as unstructured objects have it.
func specOf(pm *v1alpha1.PredictedMetric, replicas int) map[string]any {
	ref := pm.Spec.ScaleTargetRef
	scalable := map[string]any{"kind": ref.Kind, "name": ref.Name}
	if g := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group; g != "" {
		scalable["apiGroup"] = g
	}
	return map[string]any{
		"scalableRef": scalable, "replicas": int64(replicas), "provisioningStrategy": pm.Spec.CapacityBuffer.ProvisioningStrategy,
	}
}

func newBuffer(version string, pm *v1alpha1.PredictedMetric, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": runtime.DeepCopyJSON(spec)}}
	o.SetGroupVersionKind(kindOf(version))
	o.SetNamespace(pm.Namespace)
	o.SetName(pm.Name)
	o.SetLabels(map[string]string{labelManagedBy: managedBy})
	o.SetOwnerReferences([]metav1.OwnerReference{owned.Reference(pm)})
	return o
}

// row is what is kept of a CapacityBuffer.
type row struct {
	name       string
	created    time.Time
	owner      types.UID      // the PredictedMetric that it was created for
	origin     string         // whose it is, for messages
	target     owned.Target   // zero with a pod template
	spec       map[string]any // nil without owner
	conditions []metav1.Condition
}

// rowOf reads a buffer. What is not of the type that it should be is absent: another may have written it.
func rowOf(o *unstructured.Unstructured) (row, bool) {
	text := func(name string) string {
		value, _, _ := unstructured.NestedString(o.Object, "spec", "scalableRef", name)
		return value
	}
	r := row{name: o.GetName(), created: o.GetCreationTimestamp().Time, owner: owned.By(o)}
	if name := text("name"); name != "" {
		r.target = owned.Target{Namespace: o.GetNamespace(), Kind: schema.GroupKind{Group: text("apiGroup"), Kind: text("kind")}, Name: name}
	}
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		r.origin = fmt.Sprintf(" of %s %s", owner.Kind, owner.Name)
	}
	if r.owner != "" {
		r.spec, r.conditions = specIn(o), conditionsIn(o)
	}
	return r, true
}

func specIn(o *unstructured.Unstructured) map[string]any {
	spec, _, _ := unstructured.NestedMap(o.Object, "spec") // a copy
	return spec
}

// replicasIn returns the size that a spec has, false without one.
func replicasIn(spec map[string]any) (int, bool) {
	n, ok := spec["replicas"].(int64)
	return int(n), ok
}

// maxConditions is how many conditions of a buffer are looked at, and maxWords how much of a message: others write them.
const maxConditions, maxWords = 8, 300

func conditionsIn(o *unstructured.Unstructured) []metav1.Condition {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var out []metav1.Condition
	for _, item := range list[:min(len(list), maxConditions)] {
		var c metav1.Condition
		fields, ok := item.(map[string]any)
		if ok && runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &c) == nil && c.Type != "" {
			c.Message = strings.ToValidUTF8(c.Message[:min(len(c.Message), maxWords)], "")
			out = append(out, c)
		}
	}
	return out
}

// words lists the conditions of a buffer, as its status has them.
func words(conditions []metav1.Condition) string {
	parts := make([]string, len(conditions))
	for i, c := range conditions {
		parts[i] = fmt.Sprintf("%s is %s (%s)", c.Type, c.Status, c.Reason)
		if c.Message != "" && c.Status != metav1.ConditionTrue {
			parts[i] += ": " + c.Message
		}
	}
	return strings.Join(parts, ", ")
}
