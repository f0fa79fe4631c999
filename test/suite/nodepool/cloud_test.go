package nodepool

import (
	"context"
	"time"

	"github.com/foresail/foresail/nodepool/fleet"

	"github.com/foresail/foresail/nodepool/provider"
	"github.com/foresail/foresail/nodepool/state"
)

// cloud is where the instances of a stage are, and its journal.
type cloud interface {
	// provider, notices and store are what a process reaches it by, through its wire.
	provider(p *process) provider.Provider
	notices(p *process) provider.Notices
	store(p *process) state.Store

	// step is what time does to instances: they join, and those that are to be taken back are. It
	// returns what all does then.
	step(ctx context.Context) ([]fleet.Instance, error)
	// all returns every instance that was launched, those included that have gone.
	all(ctx context.Context) ([]fleet.Instance, error)
	// interrupt has the cloud take an instance back after a while, with a notice now.
	interrupt(ctx context.Context, id string, after time.Duration) error
	// strand has instances that are launched from now on never join, or join again.
	strand(ctx context.Context, on bool) error
}

// gone is the state of an instance in cloud.all that has been terminated.
const gone fleet.InstanceState = "Gone"

// place is where the journal and the instances of a stage are.
type place struct {
	name string
	make func(*stage) cloud
	more []scenario // that are about this place alone
}

func places() []place {
	return []place{{"kubernetes", newInKubernetes, nil}, {"dynamodb", newOnEC2, []scenario{severalTypes()}}}
}
