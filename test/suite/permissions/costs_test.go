package permissions

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"
	"github.com/foresail/foresail/nodepool/observe"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/internal/docpages"
	"github.com/foresail/foresail/nodepool/interruption"
	"github.com/foresail/foresail/nodepool/state"
	awstest "github.com/foresail/foresail/test/env/aws"
)

// price is in US dollars, in us-east-1, as published in 2026. Calls to EC2 and events of AWS
// services cost nothing.
var prices = map[string]struct {
	million float64
	unit    string
}{
	"sqs:ReceiveMessage":  {0.40, "the first million of an account is free"},
	"dynamodb:GetItem":    {0.125, "of a journal within 4 KB"},
	"dynamodb:UpdateItem": {0.625, "of a journal within 1 KB; each further KB as much again"},
}

const month = 30 * 24 * time.Hour

// TestGeneratedCosts counts the calls of a quiet cycle, and of a wait for messages, and writes to
// ec2.md what they come to.
func TestGeneratedCosts(t *testing.T) {
	f := setUp(t)
	p := f.provider(t, cluster, pool, f.stack.Outputs["LaunchTemplate"])
	store := f.store(table)
	var record state.Record
	cycle := func() {
		var err error
		record, err = store.Load(t.Context(), pool)
		require.NoError(t, err)
		_, err = p.List(t.Context())
		require.NoError(t, err)
		_, err = store.Save(t.Context(), pool, record) // the lease is renewed every 10 s, which is less than a cycle
		require.NoError(t, err)
	}
	_, err := p.Launch(t.Context(), f.launch(fleet.OnDemand))
	require.NoError(t, err)
	cycle()
	_, err = p.Offers(t.Context()) // asks what instance types are, which does not change
	require.NoError(t, err)
	f.Forget()
	cycle()
	perMonth := map[string]int{}
	var spec v1alpha1.WorkerPoolSpec
	spec.Default()
	count := func(every time.Duration) {
		for _, call := range f.Calls("") {
			perMonth[call.Service+":"+call.Operation] += int(month / every)
		}
		f.Forget()
	}
	count(spec.Interval.Duration)
	_, err = p.Offers(t.Context())
	require.NoError(t, err)
	count(observe.OffersFor)
	// of events, and of two kinds of checks, once a minute
	perMonth["ec2:DescribeInstanceStatus"] = 3 * int(month/time.Minute)
	perMonth["ec2:DescribeLaunchTemplates"] = int(month / time.Minute) // of $Default or $Latest, once a minute

	ctx := t.Context()
	receiver, err := interruption.New(ctx, interruption.Options{
		Queue: f.queue, Region: awstest.Region,
		Load: []func(*config.LoadOptions) error{config.WithCredentialsProvider(f.Config().Credentials)},
	})
	require.NoError(t, err)
	f.Send(t, f.queue, f.RebalanceRecommendation("i-1", time.Now()))
	_, err = receiver.Receive(ctx)
	require.NoError(t, err)
	var waits struct{ WaitTimeSeconds int }
	require.NoError(t, json.Unmarshal(f.Calls("ReceiveMessage")[0].Body, &waits))
	require.NotZero(t, waits.WaitTimeSeconds)
	perMonth["sqs:ReceiveMessage"] = int(month/time.Second) / waits.WaitTimeSeconds

	rows := [][]string{{"call", "in 30 days", "US dollars", ""}}
	for _, call := range slices.Sorted(maps.Keys(perMonth)) {
		price := prices[call]
		rows = append(rows, []string{"`" + call + "`", strconv.Itoa(perMonth[call]),
			fmt.Sprintf("%.2f", price.million*float64(perMonth[call])/1e6), price.unit})
	}
	docpages.Verify(t, root+"docs/ec2.md", "costs of calls", docpages.Table(rows))
}
