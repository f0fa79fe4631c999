package report

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/nodepool/plan"
	awstest "github.com/foresail/foresail/test/env/aws"
)

// Metrics arrive over the wire once a minute; a rejected call is counted, and later metrics are still sent.
func TestCloudWatchOverTheWire(t *testing.T) {
	cloud := awstest.Start(t)
	client := cloudwatch.NewFromConfig(cloud.Config(), func(o *cloudwatch.Options) { o.RetryMaxAttempts = 1 })
	h := newHarness(t, func(o *Options) { o.CloudWatch = &CloudWatch{Client: client, Namespace: "Foresail"} })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- h.reporter.Run(ctx) }()

	cycle := hold(start, plan.NothingToDo, "")
	cycle.Snapshot.Signals = []plan.Signal{
		{Name: "cpu", CPU: true, Known: true, Now: 0.25}, {Name: "memory", Memory: true, Err: "no answer"},
	}
	h.reporter.Report(t.Context(), cycle)
	metric := func(name string, value float64, unit string) awstest.Metric {
		return awstest.Metric{
			Namespace: "Foresail", Name: name, Dimensions: map[string]string{"WorkerPool": "workers"}, Value: value,
			Unit: unit, Time: start,
		}
	}
	want := []awstest.Metric{
		metric("CPUUtilization", 25, "Percent"), metric("PendingPods", 5, "Count"), metric("Nodes", 2, "Count"),
		metric("ReadyNodes", 1, "Count"),
	}
	require.Eventually(t, func() bool { return len(cloud.Metrics()) == len(want) }, time.Minute, 10*time.Millisecond)
	assert.Equal(t, want, cloud.Metrics())

	cloud.Inject(awstest.Fault{Service: awstest.CloudWatch, Times: 1, Do: awstest.Throttle})
	cycle.At = start.Add(time.Minute)
	h.reporter.Report(t.Context(), cycle)
	failed := h.metrics.failed.WithLabelValues("cloudwatch")
	require.Eventually(t, func() bool { return testutil.ToFloat64(failed) == 1 }, time.Minute, 10*time.Millisecond)
	cycle.At = start.Add(2 * time.Minute)
	h.reporter.Report(t.Context(), cycle)
	require.Eventually(t, func() bool { return len(cloud.Metrics()) == 2*len(want) }, time.Minute, 10*time.Millisecond)
	assert.Equal(t, cycle.At, cloud.Metrics()[len(want)].Time)
	cancel()
	require.NoError(t, <-ended)
}
