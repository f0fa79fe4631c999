// Package hpacontroller plays scenarios to the HPA controller of kube-controller-manager, in
// virtual time, and writes how many replicas it sets. It is a test because virtual time is for
// tests alone: what the answers should be is not known here, but to
// test/env/controlplane/hpacontroller, which runs it.
package hpacontroller

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	scalefake "k8s.io/client-go/scale/fake"
	core "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	defaults "k8s.io/kubernetes/pkg/apis/autoscaling/v2"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

var (
	scenarioFile = flag.String("scenarios", "", "file of scenarios to play, in JSON")
	answerFile   = flag.String("answers", "", "file to write the answers to, in JSON")
)

// scenario is one HPA and what it finds, look by look. Times are milliseconds from the scenario's
// start; the n-th look, counted from 1, is at n times Period.
type scenario struct {
	Min, Max    int32
	Behavior    *autoscalingv2.HorizontalPodAutoscalerBehavior
	Period      int64
	Tolerance   float64
	Downscale   int64 // the stabilisation window of kube-controller-manager's flag
	CPUInit     int64
	InitialRead int64
	Replicas    int32
	Looks       []look
}

type look struct {
	Set     *int32 // spec.replicas as another client set it before
	Status  int32
	Pods    []pod
	Metrics []metric
}

type pod struct {
	Phase       corev1.PodPhase
	Terminating bool
	Started     *int64
	Ready       corev1.ConditionStatus
	Changed     int64
	Request     *int64
	Usage       *usage
}

type usage struct{ Value, T, Window int64 }

// metric is CPU utilisation, or External with a Value or an AverageValue.
type metric struct {
	Kind   string // "utilization", "value" or "average"
	Target int64
	Items  []int64
	Fails  bool
}

// answer is spec.replicas after each look.
type answer []int32

func TestAnswer(t *testing.T) {
	if *scenarioFile == "" {
		t.Skip("without -scenarios there is nothing to play")
	}
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	// one of them waits until the time of the error before, which may be outside of virtual time
	utilruntime.ErrorHandlers = nil
	data, err := os.ReadFile(*scenarioFile)
	if err != nil {
		t.Fatal(err)
	}
	var all []scenario
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	answers := make([]answer, len(all))
	for i := range all {
		synctest.Test(t, func(t *testing.T) { answers[i] = play(t, &all[i]) })
	}
	data, err = json.Marshal(answers)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*answerFile, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

const (
	namespace = "lab"
	name      = "load"
)

var selector = map[string]string{"app": name}

// cluster is what the controller sees: the look that is due, nil before the first, and the replicas
// that it has set.
type cluster struct {
	began    time.Time
	replicas int32
	look     *look
}

func play(t *testing.T, s *scenario) answer {
	c := &cluster{began: time.Now(), replicas: s.Replicas}
	client := fake.NewSimpleClientset(s.hpa()) // one that tracks who manages fields takes ten times as long
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods()
	ctx, cancel := context.WithCancel(t.Context())
	controller := podautoscaler.NewHorizontalController(
		ctx, client.CoreV1(), c.scales(), client.AutoscalingV2(), mapper(), c,
		factory.Autoscaling().V2().HorizontalPodAutoscalers(), pods,
		duration(s.Period), duration(s.Downscale), s.Tolerance, duration(s.CPUInit), duration(s.InitialRead),
	)
	indexer := pods.Informer().GetIndexer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		controller.Run(ctx, 1)
	}()
	time.Sleep(duration(s.Period) / 2)
	var out answer
	for i := range s.Looks {
		c.set(&s.Looks[i], indexer, t)
		time.Sleep(duration(s.Period))
		synctest.Wait()
		out = append(out, c.replicas)
	}
	cancel()
	<-stopped
	factory.Shutdown()
	return out
}

func (c *cluster) set(l *look, indexer cache.Indexer, t *testing.T) {
	c.look = l
	if l.Set != nil {
		c.replicas = *l.Set
	}
	list := make([]any, 0, len(l.Pods))
	for i := range l.Pods {
		list = append(list, c.pod(i))
	}
	if err := indexer.Replace(list, ""); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) pod(i int) *corev1.Pod {
	p := &c.look.Pods[i]
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: podName(i), Namespace: namespace, Labels: selector},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
		Status:     corev1.PodStatus{Phase: p.Phase},
	}
	if p.Request != nil {
		out.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(*p.Request, resource.DecimalSI)}
	}
	if p.Terminating {
		now := metav1.Now()
		out.DeletionTimestamp = &now
	}
	if p.Started != nil {
		at := metav1.NewTime(c.at(*p.Started))
		out.Status.StartTime = &at
	}
	if p.Ready != "" {
		out.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: p.Ready,
			LastTransitionTime: metav1.NewTime(c.at(p.Changed))}}
	}
	return out
}

func (c *cluster) at(t int64) time.Time { return c.began.Add(duration(t)) }

func podName(i int) string { return fmt.Sprintf("pod-%d", i) }

func duration(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// hpa returns the HPA as the API server would have it, defaults filled in.
func (s *scenario) hpa() *autoscalingv2.HorizontalPodAutoscaler {
	h := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment",
				Name: name},
			MinReplicas: &s.Min, MaxReplicas: s.Max, Behavior: s.Behavior,
		},
	}
	for i, m := range s.Looks[0].Metrics {
		h.Spec.Metrics = append(h.Spec.Metrics, m.spec(i))
	}
	defaults.SetDefaults_HorizontalPodAutoscaler(h)
	return h
}

func (m *metric) spec(i int) autoscalingv2.MetricSpec {
	if m.Kind == "utilization" {
		percent := int32(m.Target)
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType,
					AverageUtilization: &percent},
			}}
	}
	source := &autoscalingv2.ExternalMetricSource{Metric: autoscalingv2.MetricIdentifier{Name: metricName(i)}}
	target := resource.NewMilliQuantity(m.Target, resource.DecimalSI)
	if m.Kind == "average" {
		source.Target = autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: target}
	} else {
		source.Target = autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: target}
	}
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: source}
}

func metricName(i int) string { return fmt.Sprintf("metric-%d", i) }

func mapper() meta.RESTMapper {
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{apps})
	m.Add(apps.WithKind("Deployment"), meta.RESTScopeNamespace)
	return m
}

func (c *cluster) scales() *scalefake.FakeScaleClient {
	client := &scalefake.FakeScaleClient{}
	client.AddReactor("get", "deployments", func(core.Action) (bool, runtime.Object, error) {
		if c.look == nil { // since 1.37 the controller looks as soon as it sees an HPA, and again after a period
			return true, nil, errors.New("no look is due")
		}
		return true, &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
			Spec:       autoscalingv1.ScaleSpec{Replicas: c.replicas},
			Status:     autoscalingv1.ScaleStatus{Replicas: c.look.Status, Selector: labels.FormatLabels(selector)},
		}, nil
	})
	client.AddReactor("update", "deployments", func(a core.Action) (bool, runtime.Object, error) {
		scale := a.(core.UpdateAction).GetObject().(*autoscalingv1.Scale)
		c.replicas = scale.Spec.Replicas
		return true, scale, nil
	})
	return client
}

var errFails = errors.New("the scenario has it fail")

// GetResourceMetric implements metrics.MetricsClient.
func (c *cluster) GetResourceMetric(context.Context, corev1.ResourceName, string, labels.Selector,
	string) (metrics.PodMetricsInfo, time.Time, error) {
	for _, m := range c.look.Metrics {
		if m.Kind == "utilization" && m.Fails {
			return nil, time.Time{}, errFails
		}
	}
	out := metrics.PodMetricsInfo{}
	for i, p := range c.look.Pods {
		if u := p.Usage; u != nil {
			out[podName(i)] = metrics.PodMetric{Timestamp: c.at(u.T), Window: duration(u.Window), Value: u.Value}
		}
	}
	return out, time.Now(), nil
}

// GetExternalMetric implements metrics.MetricsClient.
func (c *cluster) GetExternalMetric(desired, _ string, _ labels.Selector) ([]int64, time.Time, error) {
	for i, m := range c.look.Metrics {
		if metricName(i) == desired {
			if m.Fails {
				return nil, time.Time{}, errFails
			}
			return m.Items, time.Now(), nil
		}
	}
	return nil, time.Time{}, fmt.Errorf("no metric %q", desired)
}

// GetRawMetric implements metrics.MetricsClient.
func (c *cluster) GetRawMetric(string, string, labels.Selector, labels.Selector) (metrics.PodMetricsInfo, time.Time,
	error) {
	return nil, time.Time{}, errors.New("no metric of pods is in any scenario")
}

// GetObjectMetric implements metrics.MetricsClient.
func (c *cluster) GetObjectMetric(string, string, *autoscalingv2.CrossVersionObjectReference, labels.Selector) (int64,
	time.Time, error) {
	return 0, time.Time{}, errors.New("no metric of an object is in any scenario")
}
