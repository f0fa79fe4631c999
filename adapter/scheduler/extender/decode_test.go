package extender

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// fullPod has all that is read of a pod, and more.
func fullPod() *corev1.Pod {
	p := realPod(7)
	priority, policy, always := int32(1000), corev1.PreemptNever, corev1.ContainerRestartPolicyAlways
	p.Labels["tier"] = `"quoted" \ \u0041 é </script>`
	p.Spec.Priority, p.Spec.PreemptionPolicy = &priority, &policy
	p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	p.Spec.Affinity = &corev1.Affinity{
		NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: "In",
				Values: []string{"a", "b"}}},
		}}}},
		PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "kubernetes.io/hostname"}}},
	}
	sidecar := *p.Spec.Containers[0].DeepCopy()
	sidecar.Name, sidecar.RestartPolicy = "sidecar", &always
	p.Spec.InitContainers = []corev1.Container{sidecar}
	p.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("30m")}
	p.Spec.Resources = &corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("3Gi")}}
	p.Status.NominatedNodeName = "node-3"
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: "Unschedulable", Message: "0/9 nodes are available", LastTransitionTime: metav1.NewTime(epoch)}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "checkout", Image: "checkout",
		AllocatedResources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		Resources: &corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}},
	}}
	return p
}

// alike fails unless a request is answered by one pod as by the other.
func alike(t *testing.T, whole, kept *corev1.Pod) {
	t.Helper()
	a, b := podRequestOf(whole, nil), podRequestOf(kept, nil)
	assert.True(t, a.created.Equal(b.created))
	a.object, b.object, a.created, b.created = nil, nil, epoch, epoch
	assert.Equal(t, a, b)
	equal := func(a, b any) { t.Helper(); assert.True(t, apiequality.Semantic.DeepEqual(a, b), "%v\n%v", a, b) }
	equal(whole.Spec.Priority, kept.Spec.Priority)
	equal(whole.Spec.PreemptionPolicy, kept.Spec.PreemptionPolicy)
	equal(whole.Labels, kept.Labels)
	equal(whole.OwnerReferences, kept.OwnerReferences)
	equal(whole.Spec.NodeSelector, kept.Spec.NodeSelector)
	equal(whole.Spec.Tolerations, kept.Spec.Tolerations)
	equal(whole.Status.Conditions, kept.Status.Conditions)
	equal(nodeAffinity(whole), nodeAffinity(kept))
}

func nodeAffinity(p *corev1.Pod) *corev1.NodeAffinity {
	if p.Spec.Affinity == nil {
		return nil
	}
	return p.Spec.Affinity.NodeAffinity
}

func TestDecodesSchedulerRequests(t *testing.T) {
	for name, pod := range map[string]*corev1.Pod{"real": realPod(1), "full": fullPod(), "small": testPod(),
		"empty": {}} {
		t.Run(name, func(t *testing.T) {
			for format, encode := range map[string]func(any) ([]byte, error){
				"compact":  json.Marshal,
				"indented": func(v any) ([]byte, error) { return json.MarshalIndent(v, " ", "\t") },
			} {
				body, err := encode(argsOf(pod, "b", "a", "c"))
				require.NoError(t, err)
				got, names, err := decode(body, plenty)
				require.NoError(t, err, format)
				alike(t, pod, got)
				assert.Equal(t, []string{"b", "a", "c"}, names, format)
				assert.Empty(t, got.Annotations)
				assert.Empty(t, got.ManagedFields)
				assert.Empty(t, got.Spec.Volumes)
			}
		})
	}
}

func TestDecodesUnusualJSON(t *testing.T) {
	for name, body := range map[string]string{
		"another order":          ` {"NodeNames" : [ "a" ] , "Pod" : {"metadata":{"name":"p"}} } `,
		"other capitals":         `{"pod":{"metaData":{"name":"p"}},"nodenames":["a"]}`,
		"an escape in a name":    `{"Pod":{"metadata":{"name":"p"}},"NodeNames":["\u0061"]}`,
		"an escape in a key":     `{"P\u006fd":{"metadata":{"name":"p"}},"NodeNames":["a"]}`,
		"a field twice":          `{"Pod":{"metadata":{"name":"x"}},"Pod":{"metadata":{"name":"p"}},"NodeNames":["a"]}`,
		"names twice":            `{"Pod":{"metadata":{"name":"p"}},"NodeNames":["x"],"NodeNames":["a"]}`,
		"an unknown field":       `{"Pod":{"metadata":{"name":"p"}},"NodeNames":["a"],"Trace":{}}`,
		"nodes as well":          `{"Pod":{"metadata":{"name":"p"}},"Nodes":{},"NodeNames":["a"]}`,
		"part of a pod twice":    `{"Pod":{"metadata":{"name":"x"},"metadata":{"name":"p"}},"NodeNames":["a"]}`,
		"much in skipped fields": `{"Pod":{"spec":{"volumes":[{"a":"}]\\\""},[],{}],"hostIPC":true},"metadata":{"name":"p","generation":1e3}},"NodeNames":["a"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			pod, names, err := decode([]byte(body), plenty)
			require.NoError(t, err)
			assert.Equal(t, "p", pod.Name)
			assert.Equal(t, []string{"a"}, names)
		})
	}
}

func TestRejectsOtherBodies(t *testing.T) {
	for name, test := range map[string]struct{ body, want string }{
		"nothing":       {"", "unexpected end of JSON input"},
		"an empty one":  {"{}", "has no Pod"},
		"null":          {"null", "has no Pod"},
		"a pod of null": {`{"Pod":null,"NodeNames":["a"]}`, "has no Pod"},
		"nodes": {`{"Pod":{},"Nodes":{"items":[{"metadata":{"name":"a"}}]},"NodeNames":null}`,
			"nodeCacheCapable: true"},
		"no names":      {`{"Pod":{}}`, "nodeCacheCapable: true"},
		"cut off":       {`{"Pod":{"metadata":{"name":"p"}},"NodeNames":["a"`, "unexpected end of JSON input"},
		"more after it": {`{"Pod":{},"NodeNames":["a"]}}`, "invalid character '}'"},
		"a name of 1":   {`{"Pod":{},"NodeNames":[1]}`, "cannot unmarshal number"},
		"a wrong amount": {`{"Pod":{"spec":{"containers":[{"resources":{"requests":{"cpu":"much"}}}]}},"NodeNames":["a"]}`,
			"quantities must match"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := decode([]byte(test.body), plenty)
			assert.ErrorContains(t, err, test.want)
			assert.ErrorContains(t, err, "foresail: ")
		})
	}
}

// Deep nesting must not overflow the stack: Go cannot recover from that.
func TestRejectsDeeplyNestedRequests(t *testing.T) {
	for name, body := range nested(maxBody) {
		_, _, err := decode([]byte(body), plenty)
		assert.ErrorIs(t, err, errTooManyValues, name)
		_, _, err = decode([]byte(body), maxBody)
		assert.ErrorContains(t, err, "exceeded max depth", name)
	}
}

// plenty is how many nodes may be asked about in tests.
const plenty = 1000

func TestRejectsMoreThanAnyClusterHas(t *testing.T) {
	long := func(n int) string { return strings.Repeat("n", n) }
	list := func(item string, n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	for name, test := range map[string]struct{ pod, names, want string }{
		"names":           {`{}`, list(`"a"`, plenty), ""},
		"too many names":  {`{}`, list(`"a"`, plenty+1), "names 1001 nodes: want 1000 or fewer"},
		"a long name":     {`{}`, `["` + long(253) + `"]`, ""},
		"a name too long": {`{}`, `["` + long(254) + `"]`, "the name of a node has 254 bytes: want 253 or fewer"},
		"a pod's":         {`{"metadata":{"name":"` + long(254) + `"}}`, `["a"]`, "the name of the Pod has 254 bytes"},
		"its namespace": {`{"metadata":{"namespace":"` + long(254) + `"}}`, `["a"]`,
			"the namespace of the Pod has 254 bytes"},
		"a long UID": {`{"metadata":{"uid":"` + long(128) + `"}}`, `["a"]`, ""},
		"a UID too long": {`{"metadata":{"uid":"` + long(129) + `"}}`, `["a"]`,
			"the UID of the Pod has 129 bytes: want 128 or fewer"},
		"a thousand parts": {`{"spec":{"containers":` +
			list(`{"resources":{"requests":{"cpu":"1","memory":"1"}}}`, 1000) + `}}`, `["a"]`, ""},
		"too many containers": {`{"spec":{"containers":` + list(`{}`, 501) + `,"initContainers":` + list(`{}`,
			500) + `}}`,
			`["a"]`, "the Pod has 1001 containers: want 1000 or fewer"},
		"too many parts": {`{"spec":{"containers":` + list(`{}`, maxValues) + `}}`, `["a"]`, "more than 50000 values"},
		"too many that are 0": {`{"spec":{"containers":` + list(`null`, 2*maxValues) + `}}`,
			`["a"]`, "more than 50000 values"},
		"too many labels": {`{"metadata":{"labels":{` + strings.Trim(list(`"a":""`, 2*maxValues), "[]") + `}}}`,
			`["a"]`, "more than 50000 values"},
		"a long annotation": {`{"metadata":{"annotations":{"a":"` + strings.Repeat(`[{\",`, 100_000) + `"}}}`, `["a"]`,
			""},
	} {
		for _, key := range []string{"NodeNames", "nodeNames"} {
			_, _, err := decode([]byte(`{"Pod":`+test.pod+`,"`+key+`":`+test.names+`}`), plenty)
			if test.want == "" {
				assert.NoError(t, err, "%s, %s", name, key)
			} else {
				assert.ErrorContains(t, err, test.want, "%s, %s", name, key)
			}
		}
	}
}

// nested are bodies of nothing but depth.
func nested(size int) map[string]string {
	out := map[string]string{}
	for name, part := range map[string][2]string{
		"lists": {`{"Pod":`, "["}, "lists in a list that is kept": {`{"Pod":{"spec":{"containers":`, "["},
		"lists in a value that is kept": {`{"Pod":{"metadata":{"labels":`, "["},
		"lists in one that is not":      {`{"Pod":{"spec":{"volumes":`, "["},
		"pods":                          {`{"Pod":`, `{"spec":`}, "lists of objects": {`{"Pod":`, `[{"spec":`},
		"containers of the same": {`{"Pod":{"spec":`, `{"containers":[`}, "names": {`{"Pod":{},"NodeNames":`, "["},
	} {
		out[name] = part[0] + strings.Repeat(part[1], (size-len(part[0]))/len(part[1]))
	}
	return out
}

// FuzzDecode compares with the library's types and encoding/json, wherever those make sense of the body.
func FuzzDecode(f *testing.F) {
	for _, pod := range []*corev1.Pod{realPod(1), fullPod(), testPod()} {
		body, err := json.Marshal(argsOf(pod, "node-1", "node-2"))
		require.NoError(f, err)
		f.Add(body)
		f.Add(body[:len(body)/2])
	}
	for _, body := range nested(12_000) {
		f.Add([]byte(body))
	}
	f.Add([]byte(`{"Pod":{"metadata":{"labels":{"a":"\ud83d\ude00"}},"spec":null,"status":[]},"NodeNames":[]}`))
	f.Add([]byte(`{"Pod":{"spec":{"containers":[null,{"resources":{}}],"initContainers":{}}},"NodeNames":["a","a"]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		pod, names, err := decode(body, plenty)
		if err == nil {
			require.NotNil(t, pod)
		}
		var want extenderv1.ExtenderArgs
		if json.Unmarshal(body, &want) != nil || want.Pod == nil || want.NodeNames == nil {
			return
		}
		if values(body) > maxValues+plenty || isLong(want.Pod, *want.NodeNames) {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		assert.Equal(t, *want.NodeNames, names)
		alike(t, want.Pod, pod)
	})
}

// isLong reports whether a request exceeds one of the limits.
func isLong(p *corev1.Pod, names []string) bool {
	return len(names) > plenty || slices.ContainsFunc(names, func(n string) bool { return len(n) > maxNameBytes }) ||
		len(p.Name) > maxNameBytes || len(p.Namespace) > maxNameBytes || len(p.UID) > maxUIDBytes ||
		len(p.Spec.Containers)+len(p.Spec.InitContainers) > maxContainers
}
