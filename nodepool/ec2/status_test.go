package ec2

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	awstest "github.com/foresail/foresail/test/env/aws"
)

func testHardwareFails(t *testing.T, c cloud) {
	p, pass := c.timed(t)
	now := p.hardware.now()
	var ids []string
	for range 5 {
		ids = append(ids, c.start(t, p))
	}
	at := time.Date(2026, 12, 24, 6, 0, 0, 0, time.UTC)
	c.Schedule(ids[0], "instance-retirement", "The instance is running on degraded hardware", at)
	c.Schedule(ids[1], "system-reboot", "[Completed] scheduled reboot", at)
	c.Schedule(ids[1], "instance-stop", "[Canceled] a stop", at)
	c.Schedule(ids[2], "instance-reboot", "scheduled reboot", at)
	c.Impair(ids[3], now.Add(-impairedFor+time.Minute))

	got := listed(t, p)
	require.Equal(t, "AWS has scheduled its instance-retirement for 2026-12-24T06:00:00Z", got[ids[0]].Outdated)
	require.Empty(t, got[ids[1]].Outdated, "the events are over")
	require.Equal(
		t, "AWS has scheduled its instance-reboot for 2026-12-24T06:00:00Z", got[ids[2]].Outdated, "on the next page",
	)
	require.Empty(t, got[ids[3]].Outdated, "it may recover")
	require.Empty(t, got[ids[4]].Outdated)
	calls := len(c.Calls("DescribeInstanceStatus"))
	require.Len(t, listed(t, p), 5)
	require.Len(t, c.Calls("DescribeInstanceStatus"), calls, "EC2 is called once a minute")
	pass(time.Minute)
	require.Contains(t, listed(t, p)[ids[3]].Outdated, "its EC2 system status check has failed since ")
	require.Len(t, c.Calls("DescribeInstanceStatus"), 2*calls)
}

// testHardwareIsNotKnown: without the permission no instance is outdated, and the reason is reported.
func testHardwareIsNotKnown(t *testing.T, c cloud) {
	p, pass := c.timed(t)
	id := c.start(t, p)
	allow := c.Inject(
		awstest.Fault{Operation: "DescribeInstanceStatus", Status: http.StatusForbidden, Code: "UnauthorizedOperation"},
	)
	c.Schedule(id, "instance-retirement", "", time.Now())
	got := listed(t, p)[id]
	require.Empty(t, got.Outdated)
	require.Contains(t, got.OutdatedErr, "DescribeInstanceStatus")
	listed(t, p)
	require.Len(t, c.Calls("DescribeInstanceStatus"), 1, "a failed call is not repeated at once")
	allow()
	pass(time.Minute)
	got = listed(t, p)[id]
	require.NotEmpty(t, got.Outdated)
	require.Empty(t, got.OutdatedErr)
}
