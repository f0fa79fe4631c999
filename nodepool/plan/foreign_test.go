package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/foresail/foresail/nodepool/plan"
	"github.com/foresail/foresail/nodepool/state"
)

// An instance that another controller has taken is not terminated, and no longer waits to be.
func TestForeignInstancesAreNotPendingTermination(t *testing.T) {
	s := steady()
	s.Foreign = []plan.Foreign{{InstanceID: "i-theirs", Owner: "an Auto Scaling group"}}
	s.Record.PendingTerminations = []state.PendingTermination{
		{InstanceID: "i-theirs", Reason: state.TerminateOrphan, Due: noon.Add(-time.Hour)},
		{InstanceID: "i-unknown", Reason: state.TerminateOrphan, Due: noon.Add(-time.Hour)},
	}
	u := plan.Decide(s).Upkeep
	assert.Equal(t, []plan.Forget{{InstanceID: "i-theirs"}}, u.Forget)
	assert.Empty(t, u.Terminate)
}
