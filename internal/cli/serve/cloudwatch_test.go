package serve

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool"
	"github.com/foresail/foresail/nodepool/controller"
	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/report"
	awstest "github.com/foresail/foresail/test/env/aws"
)

// manager is what tellers are made with of one.
type manager struct {
	ctrl.Manager
	client client.Client
}

func (m manager) GetClient() client.Client                       { return m.client }
func (m manager) GetEventRecorder(string) recorder.EventRecorder { return events.NewFakeRecorder(10) }
func (m manager) GetLogger() logr.Logger                         { return logr.Discard() }

// A pool finds CloudWatch by the environment, and in the region of its instances.
func TestCloudWatchIsFoundByTheEnvironment(t *testing.T) {
	cloud := awstest.Start(t)
	for _, variable := range cloud.Environment() {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	b := &poolBuilder{manager: manager{client: fake.NewClientBuilder().WithScheme(scheme).Build()},
		told: report.NewMetrics(prometheus.NewRegistry())}
	for region, provider := range map[string]v1alpha1.PoolProvider{
		"ap-southeast-2": {EC2: &v1alpha1.EC2Provider{Region: "ap-southeast-2"}},
		awstest.Region:   {Simulated: &v1alpha1.SimulatedProvider{}},
	} {
		pool := &v1alpha1.WorkerPool{Spec: v1alpha1.WorkerPoolSpec{Provider: provider,
			CloudWatchNamespace: "Foresail/" + region}}
		pool.Name = "workers"
		var parts controller.Parts
		require.NoError(t, b.addReporter(t.Context(), pool, &parts))
		require.Len(t, parts.Run, 1)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- parts.Run[0](ctx) }()
		parts.Reporter.Report(ctx, nodepool.CycleReport{
			Pool: "workers", At: time.Now(), Leading: true, Decision: plan.Decision{Reason: plan.NothingToDo},
			Snapshot: plan.Snapshot{Now: time.Now(), Pending: plan.Pending{Known: true, Pods: 7}},
		})
		sent := func() map[string]float64 {
			values := map[string]float64{}
			for _, m := range cloud.Metrics() {
				if m.Namespace == "Foresail/"+region && m.Dimensions["WorkerPool"] == "workers" {
					values[m.Name] = m.Value
				}
			}
			return values
		}
		require.Eventually(t, func() bool { return len(sent()) > 0 }, time.Minute, 10*time.Millisecond)
		assert.Equal(t, map[string]float64{"PendingPods": 7, "Nodes": 0, "ReadyNodes": 0}, sent())
		calls := cloud.Calls("PutMetricData")
		assert.Equal(t, region, calls[len(calls)-1].Region)
		cancel()
		require.NoError(t, <-ended)
	}
}
