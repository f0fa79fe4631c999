package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ownedBy makes a controller of some kind the owner of a pod.
func ownedBy(kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "owner",
			UID: "owner", Controller: new(true)}}
	}
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value) }
}

// tolerates makes a pod tolerate taints of a key and an effect; "" = all. With a value it tolerates only that value.
func tolerates(key, value string, effect corev1.TaintEffect) func(*corev1.Pod) {
	one := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
	if value != "" {
		one.Operator, one.Value = corev1.TolerationOpEqual, value
	}
	return func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, one) }
}

// started sets the start of a pod to some time before the epoch.
func started(ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.StartTime = &metav1.Time{Time: epoch.Add(-ago)} }
}

func TestClassify(t *testing.T) {
	in := func(namespace string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Namespace = namespace } }
	phase := func(phase corev1.PodPhase) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.Phase = phase }
	}
	class := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.PriorityClassName = name }
	}
	priority := func(n int32) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Priority = &n } }
	leaving := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }
	mirror := annotated(corev1.MirrorPodAnnotationKey, "x")

	for name, test := range map[string]struct {
		make []func(*corev1.Pod)
		want Class
		why  string
	}{
		"of a ReplicaSet":  {[]func(*corev1.Pod){ownedBy("ReplicaSet")}, Evictable, ""},
		"of a Job":         {[]func(*corev1.Pod){ownedBy("Job")}, Evictable, ""},
		"of a StatefulSet": {[]func(*corev1.Pod){ownedBy("StatefulSet")}, Evictable, ""},
		"of a DaemonSet":   {[]func(*corev1.Pod){ownedBy("DaemonSet")}, Ignored, ""},
		"critical, of a DaemonSet": {[]func(*corev1.Pod){ownedBy("DaemonSet"), in("kube-system"),
			class("system-node-critical")}, Ignored, ""},
		"kept, of a DaemonSet": {[]func(*corev1.Pod){ownedBy("DaemonSet"), annotated(Keep, "true")},
			Ignored, ""},
		"mirror": {[]func(*corev1.Pod){ownedBy("Node"), mirror}, Ignored, ""},
		"mirror, critical, in kube-system": {[]func(*corev1.Pod){ownedBy("Node"), mirror, in("kube-system"),
			class("system-node-critical")}, Ignored, ""},
		"bare":            {nil, Blocking, "has no controller that would bring it back"},
		"bare, succeeded": {[]func(*corev1.Pod){phase(corev1.PodSucceeded)}, Ignored, ""},
		"bare, failed":    {[]func(*corev1.Pod){phase(corev1.PodFailed)}, Ignored, ""},
		"bare, of unknown phase": {[]func(*corev1.Pod){phase(corev1.PodUnknown)}, Blocking,
			"has no controller that would bring it back"},
		"bare, leaving": {[]func(*corev1.Pod){leaving}, Evictable, ""},
		"critical, leaving": {[]func(*corev1.Pod){ownedBy("ReplicaSet"),
			class("system-node-critical"), leaving}, Evictable, ""},
		"critical to nodes": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), class("system-node-critical")},
			Blocking, "has critical priority"},
		"critical to the cluster": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), class("system-cluster-critical")},
			Blocking, "has critical priority"},
		"priority of critical pods": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), priority(2000000000)},
			Blocking, "has critical priority"},
		"priority just below": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), priority(1999999999)},
			Evictable, ""},
		"in kube-system": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), in("kube-system")}, Blocking,
			"is in kube-system and not of a DaemonSet"},
		"tolerates everything": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), tolerates("", "", "")},
			Tolerant, ""},
		"tolerates the drain": {[]func(*corev1.Pod){ownedBy("ReplicaSet"),
			tolerates(Removing, "", corev1.TaintEffectNoSchedule)}, Tolerant, ""},
		"tolerates the drain, leaving": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), tolerates("", "", ""), leaving},
			Tolerant, ""},
		"tolerates all that evicts": {[]func(*corev1.Pod){ownedBy("ReplicaSet"),
			tolerates("", "", corev1.TaintEffectNoExecute)}, Evictable, ""},
		"tolerates another taint": {[]func(*corev1.Pod){ownedBy("ReplicaSet"),
			tolerates("karpenter.sh/disrupted", "", "")}, Evictable, ""},
		"tolerates one value of the taint": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), tolerates(Removing, "x", "")},
			Evictable, ""},
		"tolerates everything, of a DaemonSet": {[]func(*corev1.Pod){ownedBy("DaemonSet"), tolerates("", "", "")},
			Ignored, ""},
		"tolerates everything, kept": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), tolerates("", "", ""),
			annotated(Keep, "true")}, Blocking, "is annotated foresail.dev/do-not-disrupt=true"},
		"tolerates everything, bare": {[]func(*corev1.Pod){tolerates("", "", "")}, Blocking,
			"has no controller that would bring it back"},
		"tolerates everything, in kube-system": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), tolerates("", "", ""),
			in("kube-system")}, Blocking, "is in kube-system and not of a DaemonSet"},
		"not safe to evict": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), annotated(SafeToEvict, "false")},
			Blocking, "is annotated cluster-autoscaler.kubernetes.io/safe-to-evict=false"},
		"safe to evict": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), annotated(SafeToEvict, "true")},
			Evictable, ""},
		"safe to evict, but bare": {[]func(*corev1.Pod){annotated(SafeToEvict, "true")}, Blocking,
			"has no controller that would bring it back"},
		"not to be disrupted by Karpenter": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), annotated(KarpenterKeep, "true")},
			Blocking, "is annotated karpenter.sh/do-not-disrupt=true"},
		"not to be disrupted": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), annotated(Keep, "true")},
			Blocking, "is annotated foresail.dev/do-not-disrupt=true"},
		"to be disrupted": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), annotated(Keep, "false")},
			Evictable, ""},
		"not to be disrupted for 4h": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), annotated(KarpenterKeep, "4h"),
			started(4*time.Hour - time.Second)},
			Blocking, "is annotated karpenter.sh/do-not-disrupt=4h, until 2026-01-02T03:04:06Z"},
		"not to be disrupted for longer": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), annotated(KarpenterKeep, "1h"),
			annotated(Keep, "2h30m"), started(2 * time.Hour)},
			Blocking, "is annotated foresail.dev/do-not-disrupt=2h30m, until 2026-01-02T03:34:05Z"},
		"for 4h, which are over": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), annotated(KarpenterKeep, "4h"),
			started(4 * time.Hour)}, Evictable, ""},
		"for 4h, not started": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), annotated(Keep, "4h")}, Blocking,
			"is annotated foresail.dev/do-not-disrupt=4h and has not started"},
		"for 4h, leaving": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), annotated(Keep, "4h"), leaving},
			Evictable, ""},
		"for 4h, of a DaemonSet": {[]func(*corev1.Pod){ownedBy("DaemonSet"), annotated(Keep, "4h")},
			Ignored, ""},
		"for 4h, tolerates everything": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), annotated(Keep, "4h"),
			tolerates("", "", "")}, Blocking, "is annotated foresail.dev/do-not-disrupt=4h and has not started"},
		"for no time": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), annotated(Keep, "0s")},
			Evictable, ""},
		"for a time before": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), annotated(Keep, "-4h")},
			Evictable, ""},
		"for no duration": {[]func(*corev1.Pod){ownedBy("ReplicaSet"), annotated(Keep, "4 hours")},
			Evictable, ""},
		"annotation of Nodes alone, on a pod": {[]func(*corev1.Pod){ownedBy("ReplicaSet"),
			annotated(ScaleDownDisabled, "true")}, Evictable, ""},
		"owner that does not control it": {[]func(*corev1.Pod){ownedBy("ReplicaSet"),
			func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }},
			Blocking, "has no controller that would bring it back"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
			for _, change := range test.make {
				change(pod)
			}
			class, why := Classify(pod, epoch)
			assert.Equal(t, test.want, class)
			assert.Equal(t, test.why, why)
		})
	}
}

func TestClassifyNode(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"plain": {nil, ""},
		"not safe to evict": {map[string]string{SafeToEvict: "false"},
			"is annotated cluster-autoscaler.kubernetes.io/safe-to-evict=false"},
		"kept for Karpenter": {map[string]string{KarpenterKeep: "true"}, "is annotated karpenter.sh/do-not-disrupt=true"},
		"kept":               {map[string]string{Keep: "true"}, "is annotated foresail.dev/do-not-disrupt=true"},
		"kept for long enough": {map[string]string{KarpenterKeep: "61m"},
			"is annotated karpenter.sh/do-not-disrupt=61m, until 2026-01-02T03:05:05Z"},
		"kept no longer":       {map[string]string{Keep: "1h"}, ""},
		"kept by a wrong word": {map[string]string{Keep: "yes"}, ""},
		"no scale-down": {map[string]string{ScaleDownDisabled: "true"},
			"is annotated cluster-autoscaler.kubernetes.io/scale-down-disabled=true"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want,
				ClassifyNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations,
					CreationTimestamp: metav1.NewTime(epoch.Add(-time.Hour))}}, epoch))
		})
	}
}
