package report

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/foresail/foresail/nodepool"
)

const (
	// cloudWatchEvery is the resolution of CloudWatch's standard metrics: more values would be paid for and not kept.
	cloudWatchEvery   = time.Minute
	cloudWatchTimeout = 10 * time.Second
)

// Putter is the part of a CloudWatch client that is used.
type Putter interface {
	PutMetricData(
		ctx context.Context, in *cloudwatch.PutMetricDataInput, options ...func(*cloudwatch.Options),
	) (*cloudwatch.PutMetricDataOutput, error)
}

// CloudWatch sends the CPU and memory in use (in percent), pending pods and workers of a pool as metrics with the
// dimension WorkerPool. Unknown values are not sent.
type CloudWatch struct {
	Client    Putter
	Namespace string

	last time.Time
}

// figures are the metrics of one cycle for CloudWatch.
type figures struct {
	pool string
	at   time.Time
	data []types.MetricDatum
}

func figuresOf(cycle nodepool.CycleReport) figures {
	f := figures{pool: cycle.Pool, at: cycle.At}
	add := func(name string, value float64, unit types.StandardUnit) {
		f.data = append(f.data, types.MetricDatum{
			MetricName: aws.String(name), Value: aws.Float64(value), Unit: unit, Timestamp: aws.Time(cycle.At),
			Dimensions: []types.Dimension{{Name: aws.String("WorkerPool"), Value: aws.String(cycle.Pool)}},
		})
	}
	for _, s := range cycle.Snapshot.Signals {
		switch {
		case s.Known && s.CPU:
			add("CPUUtilization", 100*s.Now, types.StandardUnitPercent)
		case s.Known && s.Memory:
			add("MemoryUtilization", 100*s.Now, types.StandardUnitPercent)
		}
	}
	if cycle.Snapshot.Pending.Known {
		add("PendingPods", float64(cycle.Snapshot.Pending.Pods), types.StandardUnitCount)
	}
	if workersKnown(cycle) {
		workers, ready := counts(cycle.Snapshot.Instances)
		add("Nodes", float64(workers), types.StandardUnitCount)
		add("ReadyNodes", float64(ready), types.StandardUnitCount)
	}
	return f
}

func (c *CloudWatch) put(ctx context.Context, f figures) error {
	if len(f.data) == 0 || !c.last.IsZero() && f.at.Sub(c.last) < cloudWatchEvery {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, cloudWatchTimeout)
	defer cancel()
	c.last = f.at
	_, err := c.Client.PutMetricData(ctx, &cloudwatch.PutMetricDataInput{
		Namespace: aws.String(c.Namespace), MetricData: f.data,
	})
	if err != nil {
		return fmt.Errorf("put metrics of %s into CloudWatch namespace %s: %w", f.pool, c.Namespace, err)
	}
	return nil
}
