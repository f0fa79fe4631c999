package capacitybuffer

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/foresail/foresail/adapter/keep"
	"github.com/foresail/foresail/api/v1alpha1"
)

const (
	group    = "autoscaling.x-k8s.io"
	resource = "capacitybuffers"
	kind     = "CapacityBuffer"

	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "foresail"
)

// versions are those of the kind, the preferred one first. All have the fields that are used here. cluster-autoscaler
// serves v1beta1, and v1alpha1 as deprecated; Karpenter 1.14 serves v1beta1.
var versions = []string{"v1", "v1beta1", "v1alpha1"}

// Conditions in the status of a CapacityBuffer.
const (
	conditionResolved     = "ReadyForProvisioning" // what one spare pod needs is known
	conditionProvisioning = "Provisioning"         // the autoscaler acts on it
)

func kindOf(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
}

// provisioningStrategy has nodes running, which every node autoscaler can.
const provisioningStrategy = "buffer.x-k8s.io/active-capacity"

// specOf returns the spec of a buffer in the form of unstructured objects.
func specOf(pm *v1alpha1.PredictedMetric, replicas int) map[string]any {
	ref := pm.Spec.ScaleTargetRef
	scalable := map[string]any{"kind": ref.Kind, "name": ref.Name}
	if g := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group; g != "" {
		scalable["apiGroup"] = g
	}
	return map[string]any{
		"scalableRef": scalable, "replicas": int64(replicas),
		"provisioningStrategy": provisioningStrategy,
	}
}

// buffers is how CapacityBuffers are read and changed.
var buffers = keep.Type{
	Resource: schema.GroupResource{Group: group, Resource: resource}, Versions: versions, NotServed: notServed,
	New:     func(version string) client.Object { return newBuffer(version) },
	NewList: func(version string) client.ObjectList { return newList(version) },
	Target:  targetOf, Conditions: conditionsIn, SetSpec: setSpec,
	Spec:   func(o client.Object) any { return specIn(o) },
	Labels: map[string]string{labelManagedBy: managedBy},
}

func newBuffer(version string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kindOf(version))
	return o
}

func newList(version string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	gvk := kindOf(version)
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	return list
}

// content returns the fields of a buffer. Fields that are not of the type that they should be are read as absent:
// another program may have written them.
func content(o client.Object) map[string]any { return o.(*unstructured.Unstructured).Object }

// targetOf returns the target of a buffer, none with a pod template.
func targetOf(o client.Object) keep.Target {
	text := func(name string) string {
		value, _, _ := unstructured.NestedString(content(o), "spec", "scalableRef", name)
		return value
	}
	name := text("name")
	if name == "" {
		return keep.Target{}
	}
	kind := schema.GroupKind{Group: text("apiGroup"), Kind: text("kind")}
	return keep.Target{Namespace: o.GetNamespace(), Kind: kind, Name: name}
}

// specIn returns a copy of the spec.
func specIn(o client.Object) map[string]any {
	spec, _, _ := unstructured.NestedMap(content(o), "spec")
	return spec
}

func setSpec(o client.Object, spec any) {
	content(o)["spec"] = runtime.DeepCopyJSON(spec.(map[string]any))
}

// replicasIn returns the size that a spec has, false without one.
func replicasIn(spec map[string]any) (int, bool) {
	n, ok := spec["replicas"].(int64)
	return int(n), ok
}

// maxConditions is how many conditions of a buffer are looked at, and maxWords how much of a message: others write
// them.
const maxConditions, maxWords = 8, 300

func conditionsIn(o client.Object) []metav1.Condition {
	list, _, _ := unstructured.NestedSlice(content(o), "status", "conditions")
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
